/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * VLAN-aware bridges: which VLAN a frame belongs to, what a port is in it, and
 * what happens to the tag. It follows the kernel's __allowed_ingress,
 * br_allowed_egress and br_handle_vlan (net/bridge/br_vlan.c).
 */
#ifndef XDPL2_VLAN_H
#define XDPL2_VLAN_H

#include "headers/ether.h"
#include "maps.h"

struct frame {
	const void *data;
	const void *data_end;
	__u32 len;     /* bytes, all of them, also those behind data_end */
	__u32 packets; /* what it counts as */
	__u32 vlans;   /* constant: the bridge is VLAN-aware (mode mac) */
	__u32 blind;   /* constant: a tag outside the data cannot be known (XDP) */
	const struct __sk_buff *skb; /* that knows it; NULL in XDP */
	__u32 any_len; /* segmented on its way out: no length limit */
};

/* The VLAN that a frame travels in. */
struct lane {
	__u32 vid;    /* 0 in a bridge that knows no VLANs, and if it belongs to none */
	__u32 tagged; /* it carries a tag of the bridge's kind */
	__u32 tci;    /* of that tag */
	__be16 proto; /* the type behind that tag */
};

/* A VLAN tag is kept outside the data. */
static __always_inline int is_tagged(const struct frame *frame)
{
	return frame->skb && frame->skb->vlan_present;
}

static __always_inline __be16 bridge_tpid(void)
{
	return config.flags & CONFIG_VLAN_AD ? bpf_htons(ETH_P_8021AD) : bpf_htons(ETH_P_8021Q);
}

/*
 * Finds the VLAN of a frame. A tag of the other kind counts as payload, and a
 * tag with VID 0 says nothing but a priority. Returns 0 if the tag is cut off.
 */
static __always_inline int find_lane(struct lane *lane, const struct frame *frame,
				     const struct ethhdr *eth, __u32 pvid)
{
	if (is_tagged(frame)) {
		lane->tagged = frame->skb->vlan_proto == bridge_tpid();
		lane->tci = frame->skb->vlan_tci;
	} else if (eth->h_proto == bridge_tpid()) {
		const struct vlan_ethhdr *vlan = frame->data;

		if (unlikely((const void *)(vlan + 1) > frame->data_end))
			return 0;
		lane->tagged = 1;
		lane->tci = bpf_ntohs(vlan->h_vlan_TCI);
		lane->proto = vlan->h_vlan_encapsulated_proto;
	}
	lane->vid = lane->tagged ? lane->tci & VLAN_VID_MASK : 0;
	if (!lane->vid)
		lane->vid = pvid;
	return 1;
}

/* What a port is in a VLAN, enum vlan_flag; of VLAN 0 nothing is a member. */
static __always_inline __u32 vlan_flags(__u32 slot, __u32 vid)
{
	struct port_vlans *all = bpf_map_lookup_elem(&vlans, &slot);

	/* Kernels before 5.16 forget the bound of what was spilled to the stack. */
	barrier_var(vid);
	return all ? all->vid[vid & VLAN_VID_MASK] : 0;
}

/* Why a frame cannot enter or leave in a VLAN. */
static __always_inline __u32 vlan_verdict(__u32 flags)
{
	return flags & VLAN_MEMBER ? PASS_BLOCKED : PASS_VLAN;
}

/* What becomes of the tag at a port where the VLAN has these flags. */
static __always_inline enum tag_change tag_change(const struct lane *lane, __u32 flags, __u32 *tci)
{
	if (flags & VLAN_UNTAGGED)
		return lane->tagged ? TAG_POP : TAG_KEEP;
	if (!lane->tagged) {
		*tci = lane->vid;
		return TAG_PUSH;
	}
	if (likely(lane->tci & VLAN_VID_MASK))
		return TAG_KEEP;
	*tci = (lane->tci & VLAN_PRIO_MASK) | lane->vid;
	return TAG_SET;
}

static __always_inline int pop_tag_xdp(struct xdp_md *ctx)
{
	const struct vlan_ethhdr *from = (void *)(long)ctx->data;
	__u8 addresses[2 * ETH_ALEN];
	struct ethhdr *to;

	if ((void *)(from + 1) > (void *)(long)ctx->data_end)
		return 0;
	__builtin_memcpy(addresses, from->addresses, sizeof(addresses));
	if (bpf_xdp_adjust_head(ctx, VLAN_HLEN))
		return 0;
	to = (void *)(long)ctx->data;
	if ((void *)(to + 1) > (void *)(long)ctx->data_end)
		return 0; /* for the verifier: the helper leaves a header */
	__builtin_memcpy(to, addresses, sizeof(addresses));
	return 1;
}

static __always_inline int push_tag_xdp(struct xdp_md *ctx, __u32 tci)
{
	const struct ethhdr *from = (void *)(long)ctx->data;
	__u8 addresses[2 * ETH_ALEN];
	struct vlan_ethhdr *to;

	if ((void *)(from + 1) > (void *)(long)ctx->data_end)
		return 0;
	__builtin_memcpy(addresses, from, sizeof(addresses));
	if (bpf_xdp_adjust_head(ctx, -VLAN_HLEN))
		return 0;
	to = (void *)(long)ctx->data;
	if ((void *)(to + 1) > (void *)(long)ctx->data_end)
		return 0; /* for the verifier */
	__builtin_memcpy(to->addresses, addresses, sizeof(addresses));
	to->h_vlan_proto = bridge_tpid();
	to->h_vlan_TCI = bpf_htons(tci);
	return 1;
}

/* Carries out a change of the tag in the data. Returns 0 if nothing was changed. */
static __always_inline int change_tag_xdp(struct xdp_md *ctx, enum tag_change change, __u32 tci)
{
	struct vlan_ethhdr *eth = (void *)(long)ctx->data;

	if (change == TAG_POP)
		return pop_tag_xdp(ctx);
	if (change == TAG_PUSH)
		return push_tag_xdp(ctx, tci);
	if ((void *)(eth + 1) > (void *)(long)ctx->data_end)
		return 0;
	eth->h_vlan_TCI = bpf_htons(tci);
	return 1;
}

/* The same beside the data. Returns what is to be done with a frame whose tag was changed. */
static __always_inline int change_tag_tc(struct __sk_buff *ctx, enum tag_change change, __u32 tci)
{
	if (change != TAG_PUSH && bpf_skb_vlan_pop(ctx))
		return TC_ACT_UNSPEC;
	if (change != TAG_POP && bpf_skb_vlan_push(ctx, bridge_tpid(), tci))
		return change == TAG_SET ? TC_ACT_SHOT : TC_ACT_UNSPEC;
	return TC_ACT_REDIRECT;
}

#endif
