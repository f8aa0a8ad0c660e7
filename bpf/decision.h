/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The decision: what becomes of one frame. It is the same for XDP and tc; the
 * programs around it fetch the frame and carry out the verdict. When in doubt
 * the answer is a pass, and the bridge does what it always did.
 */
#ifndef XDPL2_DECISION_H
#define XDPL2_DECISION_H

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

static __always_inline struct port *port_of(__u32 slot)
{
	return bpf_map_lookup_elem(&ports, &slot);
}

/*
 * What the bridge would learn from this frame. A station that is known on
 * another port has moved: its entry goes at once, before any frame to it can
 * take the old port, and the bridge sees the frame and learns the new one.
 * Returns the station if it is known on this port, else NULL and *verdict.
 */
static __always_inline struct station *look_up_source(const __u8 *addr, const struct lane *lane,
							    int learns, __u32 *verdict)
{
	struct station_key key = { .vlan = lane->vid };
	struct station *from;
	struct state *now;
	__u32 zero = 0;

	__builtin_memcpy(key.mac, addr, ETH_ALEN);
	from = bpf_map_lookup_elem(&stations, &key);
	if (!from) {
		*verdict = is_valid_source(addr) ? PASS_UNKNOWN_SOURCE : PASS_MALFORMED;
		return NULL;
	}
	if (unlikely(from->slot != config.slot || (from->flags & STATION_LOCAL))) {
		*verdict = PASS_MOVED_SOURCE;
		if (learns && !(from->flags & (STATION_LOCAL | STATION_STAY)) &&
		    !(config.flags & CONFIG_DRY_RUN))
			bpf_map_delete_elem(&stations, &key);
		return NULL;
	}
	if (unlikely(from->flags & STATION_UNSURE)) {
		*verdict = PASS_UNKNOWN_SOURCE;
		return NULL;
	}
	now = bpf_map_lookup_elem(&shared, &zero);
	if (now && from->seen != now->epoch && !(config.flags & CONFIG_DRY_RUN))
		from->seen = now->epoch;
	return from;
}

static __always_inline int lease_ran_out(void)
{
	__u32 zero = 0;
	struct state *now = bpf_map_lookup_elem(&shared, &zero);

	return !now || bpf_jiffies64() - now->lease_renewed > now->lease_length;
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
	return frame->tagged || is_vlan_type(eth->h_proto) ||
	       (frame->blind && (own_flags & PORT_HIDES_TAGS));
}

#define PORT_STOPS                                                                                 \
	(PORT_ENABLED | PORT_FORWARDING | PORT_FILTERED | PORT_VLAN)
#define PORT_GOES (PORT_ENABLED | PORT_FORWARDING)

/* Fills out, but for the verdict, which it returns, for a frame that leaves there. */
static __always_inline __u32 leave_by(struct decision *out, const struct frame *frame,
				      const struct lane *lane, __u32 slot, __u32 own_flags)
{
	__u32 flags, len = frame->len;
	struct port *to;

	if (unlikely(slot == config.slot))
		return PASS_SAME_PORT;
	out->slot = slot;
	to = port_of(slot);
	if (unlikely(!to || !to->ifindex))
		return REDIRECT_FAILED;
	flags = to->flags;
	if (unlikely(!(flags & PORT_FORWARDING)))
		return PASS_BLOCKED;
	if (unlikely(own_flags & flags & PORT_ISOLATED))
		return PASS_ISOLATED;
	if (unlikely(flags & (frame->blind ? PORT_KEEPS_EGRESS | PORT_FILTERS_EGRESS : PORT_FILTERS_EGRESS)))
		return PASS_FILTERED;
	if (unlikely(frame->blind && (own_flags & PORT_HIDES_TAGS) && (flags & PORT_LOSES_TAGS)))
		return PASS_VLAN;
	if (config.flags & CONFIG_VLANS) {
		__u32 there = vlan_flags(slot, lane->vid);

		if (unlikely(!(there & VLAN_FORWARDS)))
			return vlan_verdict(there);
		out->tag = tag_change(lane, there, &out->tci);
		/*
		 * Outside XDP the tag is beside the data, and no part of the length, but
		 * the bridge puts one of the other kind back into the data.
		 */
		if (!frame->blind && frame->tagged && !lane->tagged)
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
	__u32 source = PASS_UNKNOWN_SOURCE, own_flags = own->flags, here = 0;
	int learns = own_flags & PORT_LEARNS;
	struct station_key key = {};
	struct lane lane = { .proto = eth->h_proto };
	struct station *from, *to;

	if (config.flags & CONFIG_VLANS) {
		/* A tag that may be hidden, and what VLAN it is then, nobody can tell. */
		if (unlikely(frame->blind && (own_flags & PORT_HIDES_TAGS)))
			return PASS_VLAN;
		if (unlikely(!find_lane(&lane, frame, eth, own->pvid)))
			return PASS_MALFORMED;
		here = vlan_flags(config.slot, lane.vid);
		learns = learns && (here & VLAN_LEARNS);
		out->vid = lane.vid;
		out->here = here;
	}
	/*
	 * What else comes to a locked port from a station that is not there is
	 * dropped before the bridge learns (br_handle_frame_finish).
	 */
	if (unlikely(own_flags & PORT_LOCKED))
		learns = learns && is_link_local(eth->h_dest);
	/* First, and for every frame: a host that roams announces itself with a broadcast. */
	from = look_up_source(eth->h_source, &lane, learns, &source);
	if (unlikely(!from && source == PASS_MOVED_SOURCE))
		return source;
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
	if ((config.flags & CONFIG_VLANS) && unlikely(!(here & VLAN_FORWARDS)))
		return vlan_verdict(here);

	key.vlan = lane.vid;
	__builtin_memcpy(key.mac, eth->h_dest, ETH_ALEN);
	to = bpf_map_lookup_elem(&stations, &key);
	if (to && (to->flags & STATION_LOCAL))
		return PASS_LOCAL;
	if (!from)
		return source;
	if (!to || unlikely(to->flags & STATION_UNSURE))
		return PASS_UNKNOWN_DESTINATION;
	return leave_by(out, frame, &lane, to->slot, own_flags);
}

/* A wire carries what comes, tags included, whatever the bridge's VLANs are. */
static __always_inline __u32 decide_port(struct decision *out, const struct frame *frame,
					 const struct ethhdr *eth, __u32 own_flags)
{
	const struct lane any = {};
	struct station_key key = {};
	struct station *to;

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
		__builtin_memcpy(key.mac, eth->h_dest, ETH_ALEN);
		to = bpf_map_lookup_elem(&stations, &key);
		if (to && (to->flags & STATION_LOCAL))
			return PASS_LOCAL;
	}
	return leave_by(out, frame, &any, config.target, own_flags);
}

static __always_inline struct decision decide(const struct frame *frame)
{
	const struct ethhdr *eth = frame->data;
	struct decision out = {};
	struct port *own;

	if (unlikely(frame->data + sizeof(*eth) > frame->data_end)) {
		out.verdict = PASS_MALFORMED;
		return out;
	}
	/*
	 * The kernel takes tags out behind XDP (skb_vlan_untag), and drops a frame
	 * that has not even a type behind its tag.
	 */
	if (frame->blind && unlikely(frame->data + sizeof(struct vlan_ethhdr) + 2 > frame->data_end) &&
	    is_vlan_type(eth->h_proto)) {
		out.verdict = PASS_MALFORMED;
		return out;
	}
	own = port_of(config.slot);
	if (unlikely(!own || ((config.flags & CONFIG_LEASE) && lease_ran_out())))
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

/* Books the verdict on this CPU; nobody else writes here. */
static __always_inline void account(const struct decision *made, const struct frame *frame)
{
	__u32 slot = config.slot, zero = 0, verdict = made->verdict;
	struct port_counters *sum;

	if (config.flags & CONFIG_TRACE) {
		struct answer *told = bpf_map_lookup_elem(&answers, &zero);

		if (told) {
			told->verdict = verdict;
			told->slot = made->slot;
			told->tag = made->tag;
			told->tci = made->tci;
			told->vid = made->vid;
			told->here = made->here;
		}
	}
	if (config.flags & (CONFIG_DRY_RUN | CONFIG_WATCH))
		return;
	sum = bpf_map_lookup_elem(&counters, &slot);
	barrier_var(verdict);
	if (sum && verdict < VERDICTS) {
		sum->verdict[verdict].packets += frame->packets;
		sum->verdict[verdict].bytes += frame->len;
	}
}

#endif
