/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Ethernet: the header, the types and the addresses that are special. */
#ifndef XDPL2_ETHER_H
#define XDPL2_ETHER_H

#include "types.h"

#define ETH_ALEN 6
#define ETH_HLEN 14

#define ETH_P_8021Q 0x8100
#define ETH_P_8021AD 0x88a8
#define ETH_P_PAUSE 0x8808 /* flow control */
#define ETH_P_SLOW 0x8809  /* LACP and other slow protocols */
#define ETH_P_PAE 0x888e   /* EAPOL, 802.1X */
#define ETH_P_LLDP 0x88cc
#define ETH_P_MRP 0x88e3 /* media redundancy */
#define ETH_P_CFM 0x8902 /* connectivity fault management */

struct ethhdr {
	__u8 h_dest[ETH_ALEN];
	__u8 h_source[ETH_ALEN];
	__be16 h_proto;
};

#define VLAN_HLEN 4
#define VLAN_VID_MASK 0x0fff /* of the TCI; above it DEI and PCP */
#define VLAN_PRIO_MASK 0xf000

struct vlan_ethhdr {
	__u8 addresses[2 * ETH_ALEN];
	__be16 h_vlan_proto;
	__be16 h_vlan_TCI;
	__be16 h_vlan_encapsulated_proto;
};

static __always_inline int is_group(const __u8 *addr)
{
	return addr[0] & 1;
}

/*
 * 01:80:c2:00:00:00 to 0f: what a bridge takes for itself and never forwards
 * as ordinary group traffic (IEEE 802.1D table 7-10; the kernel's
 * is_link_local_ether_addr).
 */
static __always_inline int is_link_local(const __u8 *addr)
{
	return addr[0] == 0x01 && addr[1] == 0x80 && addr[2] == 0xc2 && addr[3] == 0 &&
	       addr[4] == 0 && (addr[5] & 0xf0) == 0;
}

/* A source that is a group or all zero is dropped by the bridge. */
static __always_inline int is_valid_source(const __u8 *addr)
{
	return !(addr[0] & 1) && (addr[0] | addr[1] | addr[2] | addr[3] | addr[4] | addr[5]);
}

/*
 * Types that are between a host and its switch whatever their destination.
 * All of them begin with 0x88 or 0x89, so ordinary traffic pays one compare.
 */
static __always_inline int is_control_type(__be16 proto)
{
	if (likely((proto & bpf_htons(0xfe00)) != bpf_htons(0x8800)))
		return 0;
	switch (proto) {
	case bpf_htons(ETH_P_PAUSE):
	case bpf_htons(ETH_P_SLOW):
	case bpf_htons(ETH_P_PAE):
	case bpf_htons(ETH_P_LLDP):
	case bpf_htons(ETH_P_MRP):
	case bpf_htons(ETH_P_CFM):
		return 1;
	}
	return 0;
}

static __always_inline int is_vlan_type(__be16 proto)
{
	return proto == bpf_htons(ETH_P_8021Q) || proto == bpf_htons(ETH_P_8021AD);
}

#endif
