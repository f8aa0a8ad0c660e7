// SPDX-License-Identifier: Apache-2.0
'use strict';
'require baseclass';

// The daemon's reasons, in the user's language and with what to do. The daemon
// writes them in English, as sentences with names in them; a sentence that is
// not known here is shown as it is.

/* A pattern: words of the daemon, with %s for a name. say takes the names in
   the same order; todo is what can be done. */
function known() {
	return [
		[ 'xdpl2 is switched off (option enabled of section main)',
			_('xdpl2 is switched off'),
			_('Switch it on at the top of this page.') ],
		[ 'the port is switched off (option enabled of its section)',
			_('the port is switched off in the settings'),
			_('Switch it on under Settings, Ports.') ],
		[ 'there is no device %s; it is taken when it appears',
			_('there is no device %s; it is taken when it appears'),
			_('Plug it in, load its driver, or correct the name under Settings, Ports.') ],
		[ '%s is wireless: stations there come and go, and isolation is the driver\'s (option wireless of section main allows it)',
			_('%s is wireless: stations there come and go, and isolation is the driver\'s business'),
			_('If you want it all the same, allow wireless ports under Settings, Advanced.') ],
		[ '%s: frames go through the bridge, so that it sees them; %s; option bypass_filters of section main accelerates regardless',
			_('%s: frames go through the bridge, so that it sees them; %s'),
			_('If the filter is not needed, remove it. Under Settings, Advanced, acceleration past filters can be allowed.') ],
		[ '%s has a shaping qdisc (%s), and XDP sends past it',
			_('%s has a shaping qdisc (%s), and XDP sends past it'),
			_('Nothing to do: engine tc is used, which the shaper sees.') ],
		[ '%s, and XDP sends past it',
			_('%s, and XDP sends past it'),
			_('Nothing to do: engine tc is used, which the filter sees.') ],
		[ '%s is in no bridge yet; it is taken in a moment',
			_('%s is in no bridge yet; it is taken in a moment'),
			_('Wait a moment.') ],
		[ 'there is no bridge %s',
			_('there is no bridge %s'),
			_('Choose the bridge under Settings, or make it under Network, Interfaces, Devices.') ],
		[ '%s is itself a bridge',
			_('%s is itself a bridge'),
			_('Name the ports of the bridge instead of the bridge.') ],
		[ '%s is not a port of %s',
			_('%s is not a port of %s'),
			_('Add it to the bridge under Network, Interfaces, Devices, or remove it from the ports here.') ],
		[ '%s is a member of a %s: frames belong to that',
			_('%s is a member of a %s: frames belong to that'),
			_('Nothing to do: such members are left to the kernel.') ],
		[ '%s is a port of %s, not of %s',
			_('%s is a port of %s, not of %s'),
			_('Choose the other bridge under Settings, or remove this port there.') ],
		[ '%s keeps STP states per spanning tree instance (mst_enabled), and the kernel does not tell of their changes',
			_('%s keeps STP states per spanning tree instance (mst_enabled), and the kernel does not tell of their changes'),
			_('The bridge carries its frames. If you do not need MSTP, switch mst_enabled off on the bridge.') ],
		[ '%s maps VLANs to tunnels (vlan_tunnel)',
			_('%s maps VLANs to tunnels (vlan_tunnel)'),
			_('Nothing to do: tunnels are the bridge\'s business.') ],
		[ '%s answers ARP or neighbour solicitations for stations behind %s (proxy_arp, neigh_suppress)',
			_('%s answers ARP or neighbour solicitations for stations behind %s (proxy_arp, neigh_suppress)'),
			_('If that is not wanted, switch proxy ARP and neighbour suppression off on the ports of the bridge.') ],
		[ '%s may keep VLAN tags beside the frame, where XDP does not see them: in the VLAN-aware %s engine tc is needed',
			_('%s may keep VLAN tags beside the frame, where XDP does not see them: in the VLAN-aware %s engine tc is needed'),
			_('Set the engine of the port to auto or tc under Settings, Ports.') ],
		[ '%s has not been taken out of its bridge',
			_('%s has not been taken out of its bridge'),
			_('The system log says why: logread -e xdpl2') ],
		[ 'somebody has moved %s %s; xdpl2 leaves it there (xdpl2 reload takes it again)',
			_('somebody has moved %s %s; xdpl2 leaves it there'),
			_('If it is to be taken again: xdpl2 reload') ],
		[ 'there is no device %s',
			_('there is no device %s'),
			_('Plug it in, load its driver, or correct the name under Settings, Ports.') ],
		[ '%s has the box\'s address %s, which could not be reached any more (option force \'1\' of section main takes it all the same)',
			_('%s has the box\'s address %s, which could not be reached any more'),
			_('Keep another way to the box first. Under Settings, Advanced, taking it all the same can be allowed.') ],
		[ '%s is the last port of %s, which has the box\'s address %s: it could not be reached any more (option force \'1\' of section main takes all ports all the same)',
			_('%s is the last port of %s, which has the box\'s address %s: it could not be reached any more'),
			_('Leave one port in the bridge. Under Settings, Advanced, taking all ports all the same can be allowed.') ],
		[ '%s are the last ports of %s, which has the box\'s address %s: it could not be reached any more (option force \'1\' of section main takes all ports all the same)',
			_('%s are the last ports of %s, which has the box\'s address %s: it could not be reached any more'),
			_('Leave one port in the bridge. Under Settings, Advanced, taking all ports all the same can be allowed.') ],
		[ '%s %s of %s, which has the box\'s address %s: it could not be reached any more (option force \'1\' of section main takes all ports all the same)',
			_('%s %s of %s, which has the box\'s address %s: it could not be reached any more'),
			_('Leave one port in the bridge. Under Settings, Advanced, taking all ports all the same can be allowed.') ],
		[ '%s and %s are ports of one hardware switch, which forwards between them itself',
			_('%s and %s are ports of one hardware switch, which forwards between them itself'),
			_('Nothing to do: the switch chip is faster than any CPU.') ],
		[ '%s connects a hardware switch (%s is one of its ports): frames on it carry the switch\'s tag',
			_('%s connects a hardware switch (%s is one of its ports): frames on it carry the switch\'s tag'),
			_('Nothing to do: take it out of the ports here.') ],
		[ 'target %s cannot be used: %s',
			_('its target %s cannot be used: %s'),
			_('Choose another target under Settings, Ports, or mend the target\'s port first.') ],
		[ 'it is not configured',
			_('it is not configured'), '' ],
		[ 'in use', _('in use'), '' ],
		[ 'not native: %s',
			_('not native: %s'),
			_('Nothing to do: tc is the next best. The drivers of all ports must be able to do native XDP.') ],
		[ '%s is virtual (%s): its frames may have unfinished checksums, which XDP would send as they are',
			_('%s is virtual (%s): its frames may have unfinished checksums, which XDP would send as they are'),
			_('Set the engine of the port to auto or tc under Settings, Ports.') ],
		[ '%s is a virtual machine\'s card (%s): its frames may have unfinished checksums, which XDP would send as they are',
			_('%s is a virtual machine\'s card (%s): its frames may have unfinished checksums, which XDP would send as they are'),
			_('Set the engine of the port to auto or tc under Settings, Ports.') ],
		[ '%s is virtual (%s): native is not sure to get through there',
			_('%s is virtual (%s): native is not sure to get through there'), '' ],
		[ '%s merges packets itself (%s), which generic XDP would end',
			_('%s merges packets itself (%s), which generic XDP would end'), '' ],
		[ '%s takes no XDP program in its driver (%s)',
			_('%s takes no XDP program in its driver (%s)'), '' ],
		[ '%s could not send what native XDP redirects there (%s)',
			_('%s could not send what native XDP redirects there (%s)'), '' ],
		[ 'native XDP was tried, and what it redirected to %s did not come out there',
			_('native XDP was tried, and what it redirected to %s did not come out there'), '' ],
		[ 'the port is not accelerated', _('the port is not accelerated'), '' ],
		[ 'native is in use', _('native is in use'), '' ],
		[ 'auto prefers native: it is the fastest',
			_('auto prefers native: it is the fastest'), '' ],
		[ 'auto prefers tc: it is never slower than the bridge, TCP included',
			_('auto prefers tc: it is never slower than the bridge, TCP included'), '' ],
		[ 'frames are being captured, and taps see those of tc only',
			_('frames are being captured, and taps see those of tc only'),
			_('Nothing to do: when the capture (xdpl2 capture) ends, the port has its engine again.') ],
		[ 'auto tries generic where more frames come: there are too few for the engine to matter (less than %s a second)',
			_('auto tries generic where more frames come: there are too few for the engine to matter (less than %s a second)'), '' ],
		[ 'auto tries generic where there is more to do: forwarding takes less than %s% of a core here',
			_('auto tries generic where there is more to do: forwarding takes less than %s%% of a core here'), '' ],
		[ 'GRO puts %s frames together here on average, and generic would turn it off',
			_('GRO puts %s frames together here on average, and generic would turn it off'), '' ],
		[ '%s% of the frames are for the box itself or routed, and generic would take GRO from them',
			_('%s%% of the frames are for the box itself or routed, and generic would take GRO from them'), '' ],
		[ 'auto tries generic where frames are short: they have %s bytes on average',
			_('auto tries generic where frames are short: they have %s bytes on average'), '' ],
		[ 'frames have become longer (%s bytes on average instead of %s): tc shows what GRO would gain',
			_('frames have become longer (%s bytes on average instead of %s): tc shows what GRO would gain'), '' ],
		[ 'auto waits until the traffic has been the same for a while before it tries generic',
			_('auto waits until the traffic has been the same for a while before it tries generic'), '' ],
		[ 'auto measures tc and generic in turns',
			_('auto measures tc and generic in turns'), '' ],
		[ 'with generic more frames were dropped on their way out than with tc',
			_('with generic more frames were dropped on their way out than with tc'), '' ],
		[ 'auto measured %s ns a frame with generic, %s ns with tc: %s times as fast (95%: %s to %s, %s pairs)',
			_('auto measured %s ns a frame with generic, %s ns with tc: %s times as fast (95%%: %s to %s, %s pairs)'), '' ],
		[ 'auto measured %s ns a frame with generic, %s ns with tc: %s times as fast (95%: %s to %s, %s pairs); it takes %s',
			_('auto measured %s ns a frame with generic, %s ns with tc: %s times as fast (95%%: %s to %s, %s pairs); it takes %s'), '' ],
		[ 'auto could not measure what generic costs: the clocks of this box are too coarse',
			_('auto could not measure what generic costs: the clocks of this box are too coarse'), '' ],
		[ '%s promises generic %s to %s of tc\'s speed for frames of such a length: auto seldom tries it',
			_('%s promises generic %s to %s of tc\'s speed for frames of such a length: auto seldom tries it'), '' ],
		[ '%s promises generic %s to %s of tc\'s speed for frames of such a length: auto tries it now',
			_('%s promises generic %s to %s of tc\'s speed for frames of such a length: auto tries it now'), '' ],
		[ 'auto cannot compare it with tc: %s',
			_('auto cannot compare it with tc: %s'), '' ],
		[ 'option engine asks for %s',
			_('the settings ask for engine %s'), '' ]
	];
}

function pattern(words) {
	return new RegExp('^' + words.split('%s').map(function(part) {
		return part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
	}).join('(.+?)') + '$');
}

return baseclass.extend({
	/**
	 * What a reason says, and what to do about it; todo is empty where there is
	 * nothing, and generic where the reason is not known.
	 */
	explain: function(reason) {
		var list = known(), self = this;

		for (var i = 0; i < list.length; i++) {
			var m = String(reason).match(pattern(list[i][0]));

			if (!m)
				continue;

			/* A reason may hold another one, of a port's target. */
			var names = m.slice(1).map(function(name) { return self.inner(name) });

			return { text: ''.format.apply(list[i][1], names), todo: list[i][2] };
		}

		return { text: String(reason), todo: _('The system log says more: logread -e xdpl2'), unknown: true };
	},

	inner: function(text) {
		var list = known();

		for (var i = 0; i < list.length; i++) {
			var m = /[ ]/.test(text) && text.match(pattern(list[i][0]));

			if (m)
				return ''.format.apply(list[i][1], m.slice(1));
		}

		return text;
	}
});
