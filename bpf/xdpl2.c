//go:build ignore
// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * xdpl2's data path: the same decision at two hooks, and for bridges with and
 * without VLANs, since what the compiler knows costs less than what the verifier
 * finds out. Each port has a program of its own, loaded with that port's
 * constants (see struct port_config).
 */
#include "decision.h"

/*
 * XDP, native or generic. The packet is linear here: a program that does not
 * ask for fragments never sees them.
 */
static __always_inline int on_xdp(struct xdp_md *ctx, int vlans)
{
	struct frame frame = {
		.data = (void *)(long)ctx->data,
		.data_end = (void *)(long)ctx->data_end,
		.len = ctx->data_end - ctx->data,
		.packets = 1,
		.vlans = vlans,
		.blind = 1,
	};
	struct decision made = decide(&frame);

	if (likely(made.verdict == REDIRECTED)) {
		/* The tag changes when nothing else can go wrong: what is passed is as it came. */
		if (likely(bpf_redirect_map(&egress, made.slot, XDP_PASS) == XDP_REDIRECT) &&
		    (made.tag == TAG_KEEP || change_tag_xdp(ctx, made.tag, made.tci))) {
			account(&made, &frame);
			return XDP_REDIRECT;
		}
		made.verdict = REDIRECT_FAILED;
	}
	account(&made, &frame);
	return XDP_PASS;
}

SEC("xdp")
int xdpl2_xdp(struct xdp_md *ctx)
{
	return on_xdp(ctx, 0);
}

SEC("xdp")
int xdpl2_xdp_vlan(struct xdp_md *ctx)
{
	return on_xdp(ctx, 1);
}

/*
 * tc ingress. A frame that GRO put together goes on as one: what leaves is
 * segmented again by the egress device, and the bridge, too, lets such a frame
 * pass whatever its length (is_skb_forwardable).
 */
static __always_inline int on_tc(struct __sk_buff *ctx, int vlans)
{
	struct frame frame = {
		.data = (void *)(long)ctx->data,
		.data_end = (void *)(long)ctx->data_end,
		.len = ctx->len,
		.packets = 1,
		.vlans = vlans,
		.skb = ctx,
		.any_len = ctx->gso_size,
	};
	struct decision made;
	int action = TC_ACT_UNSPEC;

	if (frame.any_len && ctx->gso_segs) {
		frame.packets = ctx->gso_segs;
		account_aggregate(frame.packets);
	}
	made = decide(&frame);
	if (likely(made.verdict == REDIRECTED)) {
		action = made.tag == TAG_KEEP ? TC_ACT_REDIRECT : change_tag_tc(ctx, made.tag, made.tci);
		if (likely(action == TC_ACT_REDIRECT)) {
			account(&made, &frame);
			return bpf_redirect(made.ifindex, 0);
		}
		made.verdict = REDIRECT_FAILED;
	}
	account(&made, &frame);
	return action;
}

SEC("tc")
int xdpl2_tc(struct __sk_buff *ctx)
{
	return on_tc(ctx, 0);
}

SEC("tc")
int xdpl2_tc_vlan(struct __sk_buff *ctx)
{
	return on_tc(ctx, 1);
}

/*
 * Renews the lease of the programs that outlive their daemon. The daemon runs
 * it (BPF_PROG_TEST_RUN), since jiffies cannot be read outside the kernel.
 */
SEC("tc")
int xdpl2_renew(struct __sk_buff *ctx)
{
	live.state.lease_renewed = bpf_jiffies64();
	return 0;
}

char __license[] SEC("license") = "Dual BSD/GPL";
