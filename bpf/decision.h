/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The decision: what becomes of one frame. It is the same for XDP and tc; the
 * programs around it fetch the frame and carry out the verdict. When in doubt
 * the answer is a pass, and the bridge does what it always did.
 */
#ifndef XDPL2_DECISION_H
#define XDPL2_DECISION_H

#include "stations.h"
#include "vlan.h"

struct decision {
	__u32 verdict;
	__u32 slot;    /* where it goes */
	__u32 ifindex; /* the same */
	enum tag_change tag;
	__u32 tci;  /* of the tag that is pushed or set */
	__u32 vid;  /* for who asks why */
	__u32 here; /* the same */
};

/* The port that a slot stands for. */
static __always_inline struct port *port_of(__u32 slot)
{
	return &live.port[slot & (MAX_PORTS - 1)];
}

enum source {
	SOURCE_UNKNOWN, /* or not sure yet */
	SOURCE_KNOWN,	/* on this port */
	SOURCE_MOVED,
};

/* Whether the bridge would learn who has sent this frame. */
static __always_inline int teaches(const struct frame *frame, __u32 own_flags, __u32 here)
{
	const struct ethhdr *eth = frame->data;

	if (!(own_flags & PORT_LEARNS) || (frame->vlans && !(here & VLAN_LEARNS)))
		return 0;
	/*
	 * What else comes to a locked port from a station that is not there is
	 * dropped before the bridge learns (br_handle_frame_finish).
	 */
	return !(own_flags & PORT_LOCKED) || is_link_local(eth->h_dest);
}

/*
 * What the bridge would learn from this frame. A station that is known on
 * another port has moved: its entry goes at once, before any frame to it can
 * take the old port, and the bridge sees the frame and learns the new one.
 */
static __always_inline enum source look_up_source(const struct frame *frame, __u32 vid,
						  __u32 own_flags, __u32 here)
{
	struct station *from;
	__u32 epoch;
	__u64 word;

	from = find_station(&word, source_number(frame->data), vid);
	if (!from)
		return SOURCE_UNKNOWN;
	if (unlikely((word & (STATION_SLOT | STATION_LOCAL)) != config.slot)) {
		if (!(word & (STATION_LOCAL | STATION_STAY)) && !(config.flags & CONFIG_DRY_RUN) &&
		    teaches(frame, own_flags, here))
			from->word = 0;
		return SOURCE_MOVED;
	}
	if (unlikely(word & STATION_UNSURE))
		return SOURCE_UNKNOWN;
	epoch = live.state.epoch;
	if (unlikely(from->seen != epoch) && !(config.flags & CONFIG_DRY_RUN))
		from->seen = epoch;
	return SOURCE_KNOWN;
}

static __always_inline int lease_ran_out(void)
{
	return bpf_jiffies64() - live.state.lease_renewed > live.state.lease_length;
}

/* The reasons of the port itself for which nothing is taken from it. */
static __always_inline __u32 port_verdict(__u32 flags)
{
	if (!(flags & PORT_ENABLED))
		return PASS_DISABLED;
	if (flags & PORT_FILTERED)
		return PASS_FILTERED;
	if (flags & PORT_VLAN)
		return PASS_VLAN;
	return PASS_BLOCKED;
}

static __always_inline int may_be_tagged(const struct frame *frame, const struct ethhdr *eth,
					 __u32 own_flags)
{
	return is_tagged(frame) || is_vlan_type(eth->h_proto) ||
	       (frame->blind && (own_flags & PORT_HIDES_TAGS));
}

#define PORT_STOPS                                                                                 \
	(PORT_ENABLED | PORT_FORWARDING | PORT_FILTERED | PORT_VLAN)
#define PORT_GOES (PORT_ENABLED | PORT_FORWARDING)

/* Whatever may stand in a frame's way at the port that it would leave by. */
#define PORT_OBSTACLES                                                                             \
	(PORT_ISOLATED | PORT_LOSES_TAGS | PORT_KEEPS_EGRESS | PORT_FILTERS_EGRESS)

static __always_inline __u32 obstacle(const struct frame *frame, __u32 own_flags, const struct port *to)
{
	__u32 flags = to->flags, filters = PORT_FILTERS_EGRESS;

	if (!to->ifindex)
		return REDIRECT_FAILED;
	if (!(flags & PORT_FORWARDING))
		return PASS_BLOCKED;
	if (own_flags & flags & PORT_ISOLATED)
		return PASS_ISOLATED;
	if (frame->blind)
		filters |= PORT_KEEPS_EGRESS;
	if (flags & filters)
		return PASS_FILTERED;
	if (frame->blind && (own_flags & PORT_HIDES_TAGS) && (flags & PORT_LOSES_TAGS))
		return PASS_VLAN;
	return REDIRECTED;
}

/* Fills out, but for the verdict, which it returns, for a frame that leaves there. */
static __always_inline __u32 leave_by(struct decision *out, const struct frame *frame,
				      const struct lane *lane, __u32 slot, __u32 own_flags)
{
	const struct port *to = port_of(slot);
	__u32 len = frame->len;

	if (unlikely(slot == config.slot))
		return PASS_SAME_PORT;
	out->slot = slot;
	if (unlikely((to->flags & (PORT_FORWARDING | PORT_OBSTACLES)) != PORT_FORWARDING)) {
		__u32 verdict = obstacle(frame, own_flags, to);

		if (verdict != REDIRECTED)
			return verdict;
	}
	if (frame->vlans) {
		__u32 there = vlan_flags(slot, lane->vid);

		if (unlikely(!(there & VLAN_FORWARDS)))
			return vlan_verdict(there);
		out->tag = tag_change(lane, there, &out->tci);
		/*
		 * Outside XDP the tag is beside the data, and no part of the length, but
		 * the bridge puts one of the other kind back into the data.
		 */
		if (!frame->blind && is_tagged(frame) && !lane->tagged)
			len += VLAN_HLEN;
		if (frame->blind && out->tag == TAG_PUSH)
			len += VLAN_HLEN;
		if (frame->blind && out->tag == TAG_POP)
			len -= VLAN_HLEN;
	}
	if (unlikely(len > to->max_len && !frame->any_len))
		return PASS_MTU;
	out->ifindex = to->ifindex;
	return REDIRECTED;
}

static __always_inline __u32 decide_mac(struct decision *out, const struct frame *frame,
					const struct ethhdr *eth, const struct port *own)
{
	struct lane lane = { .proto = eth->h_proto };
	__u32 own_flags = own->flags, here = 0;
	enum source source;
	__u64 to;

	if (frame->vlans) {
		/* A tag that may be hidden, and what VLAN it is then, nobody can tell. */
		if (unlikely(frame->blind && (own_flags & PORT_HIDES_TAGS)))
			return PASS_VLAN;
		if (unlikely(!find_lane(&lane, frame, eth, own->pvid)))
			return PASS_MALFORMED;
		here = vlan_flags(config.slot, lane.vid);
		out->vid = lane.vid;
		out->here = here;
	}
	/* First, and for every frame: a host that roams announces itself with a broadcast. */
	source = look_up_source(frame, lane.vid, own_flags, here);
	if (unlikely(source == SOURCE_MOVED))
		return PASS_MOVED_SOURCE;
	if (config.flags & CONFIG_WATCH)
		return PASS_DISABLED;
	if (unlikely((own_flags & PORT_STOPS) != PORT_GOES))
		return port_verdict(own_flags);
	if (is_group(eth->h_dest))
		return is_link_local(eth->h_dest) ? PASS_CONTROL : PASS_GROUP;
	if (unlikely(is_control_type(lane.proto)))
		return PASS_CONTROL;
	if (unlikely((own_flags & PORT_PASS_TAGGED) && may_be_tagged(frame, eth, own_flags)))
		return PASS_VLAN;
	if (frame->vlans && unlikely(!(here & VLAN_FORWARDS)))
		return vlan_verdict(here);

	find_station(&to, destination_number(eth), lane.vid);
	if (unlikely(to & STATION_LOCAL))
		return PASS_LOCAL;
	if (unlikely(source != SOURCE_KNOWN))
		return is_valid_source(eth->h_source) ? PASS_UNKNOWN_SOURCE : PASS_MALFORMED;
	if (unlikely(!to || (to & STATION_UNSURE)))
		return PASS_UNKNOWN_DESTINATION;
	return leave_by(out, frame, &lane, to & STATION_SLOT, own_flags);
}

/* A wire carries what comes, tags included, whatever the bridge's VLANs are. */
static __always_inline __u32 decide_port(struct decision *out, const struct frame *frame,
					 const struct ethhdr *eth, __u32 own_flags)
{
	const struct lane any = {};
	__u64 to;

	if (unlikely((own_flags & PORT_STOPS) != PORT_GOES))
		return port_verdict(own_flags);
	if (unlikely(!is_valid_source(eth->h_source)))
		return PASS_MALFORMED;
	if (unlikely(is_link_local(eth->h_dest) || is_control_type(eth->h_proto)))
		return PASS_CONTROL;
	if (unlikely((own_flags & PORT_PASS_TAGGED) && may_be_tagged(frame, eth, own_flags)))
		return PASS_VLAN;
	if (is_group(eth->h_dest)) {
		if (config.flags & CONFIG_PASS_GROUP)
			return PASS_GROUP;
	} else if (config.flags & CONFIG_PASS_LOCAL) {
		find_station(&to, destination_number(eth), 0);
		if (to & STATION_LOCAL)
			return PASS_LOCAL;
	}
	return leave_by(out, frame, &any, config.target, own_flags);
}

static __always_inline struct decision decide(const struct frame *frame)
{
	const struct ethhdr *eth = frame->data;
	struct decision out = {};
	const struct port *own = port_of(config.slot);

	if (unlikely(frame->data + sizeof(*eth) > frame->data_end)) {
		out.verdict = PASS_MALFORMED;
		return out;
	}
	/*
	 * The kernel takes tags out behind XDP (skb_vlan_untag), and drops a frame
	 * that has not even a type behind its tag.
	 */
	if (frame->blind && unlikely(is_vlan_type(eth->h_proto)) &&
	    frame->data + sizeof(struct vlan_ethhdr) + 2 > frame->data_end) {
		out.verdict = PASS_MALFORMED;
		return out;
	}
	if (unlikely((config.flags & CONFIG_LEASE) && lease_ran_out()))
		out.verdict = PASS_DISABLED;
	else if (config.mode == MODE_PORT)
		out.verdict = decide_port(&out, frame, eth, own->flags);
	else
		out.verdict = decide_mac(&out, frame, eth, own);
	return out;
}

/*
 * Books what GRO has put together: how much it gains here is what tells whether
 * an engine that does without it can be worth its while.
 */
static __always_inline void account_aggregate(__u32 segments)
{
	__u32 slot = config.slot;
	struct port_counters *sum;

	if (config.flags & (CONFIG_DRY_RUN | CONFIG_WATCH))
		return;
	sum = bpf_map_lookup_elem(&counters, &slot);
	if (sum) {
		sum->aggregates++;
		sum->segments += segments;
	}
}

/* For who asks what the decision was. */
static __always_inline void trace(const struct decision *made)
{
	__u32 zero = 0;
	struct answer *told;

	if (!(config.flags & CONFIG_TRACE))
		return;
	told = bpf_map_lookup_elem(&answers, &zero);
	if (told) {
		told->verdict = made->verdict;
		told->slot = made->slot;
		told->tag = made->tag;
		told->tci = made->tci;
		told->vid = made->vid;
		told->here = made->here;
	}
}

/* Books the verdict on this CPU; nobody else writes here. */
static __always_inline void account(const struct decision *made, const struct frame *frame)
{
	__u32 slot = config.slot, verdict = made->verdict;
	struct port_counters *sum;

	trace(made);
	if (config.flags & (CONFIG_DRY_RUN | CONFIG_WATCH))
		return;
	sum = bpf_map_lookup_elem(&counters, &slot);
	if (sum && verdict < VERDICTS) {
		sum->verdict[verdict].packets += frame->packets;
		sum->verdict[verdict].bytes += frame->len;
	}
}

#endif
