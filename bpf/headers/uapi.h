/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The part of the kernel's BPF interface (include/uapi/linux/bpf.h) that the
 * programs use, as numbers and layouts: they are ABI and do not change. All of
 * it exists on Linux 5.10.
 */
#ifndef XDPL2_UAPI_H
#define XDPL2_UAPI_H

#include "types.h"

enum {
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_DEVMAP = 14,
};

enum {
	BPF_F_MMAPABLE = 1 << 10,
};

enum xdp_action {
	XDP_ABORTED = 0,
	XDP_DROP,
	XDP_PASS,
	XDP_TX,
	XDP_REDIRECT,
};

enum {
	TC_ACT_UNSPEC = -1,
	TC_ACT_SHOT = 2,
	TC_ACT_REDIRECT = 7,
};

struct xdp_md {
	__u32 data;
	__u32 data_end;
	__u32 data_meta;
	__u32 ingress_ifindex;
	__u32 rx_queue_index;
	__u32 egress_ifindex;
};

/* The context of a tc program, up to the last field that is read here. */
struct __sk_buff {
	__u32 len;
	__u32 pkt_type;
	__u32 mark;
	__u32 queue_mapping;
	__u32 protocol;
	__u32 vlan_present;
	__u32 vlan_tci;
	__u32 vlan_proto;
	__u32 priority;
	__u32 ingress_ifindex;
	__u32 ifindex;
	__u32 tc_index;
	__u32 cb[5];
	__u32 hash;
	__u32 tc_classid;
	__u32 data;
	__u32 data_end;
	__u32 napi_id;
	__u32 family;
	__u32 remote_ip4;
	__u32 local_ip4;
	__u32 remote_ip6[4];
	__u32 local_ip6[4];
	__u32 remote_port;
	__u32 local_port;
	__u32 data_meta;
	__u64 flow_keys;
	__u64 tstamp;
	__u32 wire_len;
	__u32 gso_segs;
	__u64 sk;
	__u32 gso_size;
};

/* Helpers by number (the order of the kernel's ___BPF_FUNC_MAPPER list). */
static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static long (*const bpf_skb_vlan_push)(struct __sk_buff *ctx, __be16 proto, __u16 tci) = (void *)18;
static long (*const bpf_skb_vlan_pop)(struct __sk_buff *ctx) = (void *)19;
static long (*const bpf_redirect)(__u32 ifindex, __u64 flags) = (void *)23;
static long (*const bpf_xdp_adjust_head)(struct xdp_md *ctx, __s32 delta) = (void *)44;
static long (*const bpf_redirect_map)(void *map, __u32 key, __u64 flags) = (void *)51;
static __u64 (*const bpf_jiffies64)(void) = (void *)118;

#endif
