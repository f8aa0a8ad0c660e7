/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the data path shares with the control plane. bpf2go turns the types
 * into Go (`make generate`), so there is one definition of each.
 *
 * Ports have a slot: a small number that the control plane gives out and that
 * stays with the configured port when its ifindex changes. Everything that is
 * kept per port is an array over slots, which a program indexes with a
 * constant; an ifindex appears only as a value.
 */
#ifndef XDPL2_MAPS_H
#define XDPL2_MAPS_H

#include "headers/uapi.h"

#define MAX_PORTS 64

/* One name per reason; the order is ABI between the object and its loader. */
enum verdict {
	REDIRECTED,
	REFLECTED,
	PASS_DISABLED,
	PASS_LOCAL,
	PASS_GROUP,
	PASS_CONTROL,
	PASS_UNKNOWN_SOURCE,
	PASS_MOVED_SOURCE,
	PASS_UNKNOWN_DESTINATION,
	PASS_SAME_PORT,
	PASS_BLOCKED,
	PASS_ISOLATED,
	PASS_VLAN,
	PASS_MTU,
	PASS_FILTERED,
	PASS_MALFORMED,
	REDIRECT_FAILED,
	VERDICTS,
};

enum mode {
	MODE_MAC,
	MODE_PORT,
};

/* Flags of the constants that a program is loaded with (config.flags). */
enum config_flag {
	CONFIG_PASS_LOCAL = 1 << 0, /* mode port: the box's own addresses go to the stack */
	CONFIG_PASS_GROUP = 1 << 1, /* mode port: so do group addresses */
	CONFIG_LEASE = 1 << 2,	  /* pass everything once the lease has run out (clsact) */
	CONFIG_TRACE = 1 << 3,	  /* write the decision to the answers map */
	CONFIG_DRY_RUN = 1 << 4,	  /* decide, but count, mark and delete nothing */
	CONFIG_VLAN_AD = 1 << 5,	  /* VLAN-aware bridge: tags are 802.1ad, not 802.1Q */
	CONFIG_WATCH = 1 << 6,	  /* redirect nothing: only notice who has moved here */
};

/* Flags of a port as it is now (port.flags). */
enum port_flag {
	PORT_ENABLED = 1 << 0,	 /* frames that arrive here may be redirected */
	PORT_FORWARDING = 1 << 1,	 /* the bridge would forward from and to it */
	PORT_LEARNS = 1 << 2,	 /* the bridge learns sources here */
	PORT_ISOLATED = 1 << 3,	 /* no traffic between two isolated ports */
	PORT_FILTERED = 1 << 4,	 /* a filter wants to see every frame */
	PORT_VLAN = 1 << 5,	 /* VLANs here are the bridge's business: pass all */
	PORT_PASS_TAGGED = 1 << 6, /* VLAN devices sit on the port: pass tagged frames */
	PORT_HIDES_TAGS = 1 << 7,  /* a tag may be outside the data, where XDP cannot see it */
	PORT_LOSES_TAGS = 1 << 8,  /* such a tag would be lost when XDP sends the frame here */
	PORT_KEEPS_EGRESS = 1 << 9, /* a qdisc or tc filter on the way out: XDP would go past it */
	PORT_LOCKED = 1 << 10,	 /* only control frames teach the bridge anything here (802.1X) */
	PORT_FILTERS_EGRESS = 1 << 11, /* a filter on the way out that tc, too, would go past */
};

/* What a port is in one VLAN of a VLAN-aware bridge (port_vlans.vid). */
enum vlan_flag {
	VLAN_MEMBER = 1 << 0,	/* frames of this VLAN may come and leave */
	VLAN_FORWARDS = 1 << 1, /* and its STP state lets them */
	VLAN_LEARNS = 1 << 2,	/* its STP state lets the bridge learn */
	VLAN_UNTAGGED = 1 << 3, /* they leave without a tag */
};

/* What happens to a frame's tag on its way out. */
enum tag_change {
	TAG_KEEP,
	TAG_POP,
	TAG_PUSH,
	TAG_SET, /* a priority tag (VID 0) becomes that of the port's VLAN */
};

/* The parts of a station's word; see stations.h. */
enum station_word {
	STATION_SLOT = 0x3f,
	STATION_LOCAL = 1 << 6,	 /* an address of the box itself */
	STATION_STAY = 1 << 7,	 /* does not move with its source: sticky or static */
	STATION_UNSURE = 1 << 8, /* just written: whether it is still true is being asked */
	STATION_ANSWER = STATION_SLOT | STATION_LOCAL | STATION_STAY | STATION_UNSURE,
	STATION_VALID = 1 << 9,
	STATION_OTHER = 1 << 10, /* it is in its second line */
	STATION_WAYS = 4,	 /* stations in a line */
	STATION_FOLD = 32,
};

#define STATION_MIX 0x9e3779b97f4a7c15ULL /* an odd number; of no meaning */

/* Constants of one loaded program: one port, one mode. */
struct port_config {
	__u32 slot;
	enum mode mode;
	__u32 target; /* mode port: the slot that frames leave by */
	enum config_flag flags;
	__u32 line_bits;  /* the station table has 2^line_bits lines, 7 at least */
	__u64 multiplier; /* mixes addresses: an odd number times 16 */
};

/* A station and its mark. */
struct station {
	__u64 word; /* enum station_word, and the rest of the address; 0: nobody */
	__u32 seen; /* the epoch in which it last sent a frame */
	enum station_word unused; /* the type's name, for the Go bindings */
};

/* A cache line of the station table. */
struct station_line {
	struct station station[STATION_WAYS];
};

struct port {
	__u32 ifindex; /* 0: the slot is not in use */
	enum port_flag flags;
	__u32 max_len; /* longest frame that may leave, Ethernet header included, FCS not */
	__u32 pvid;	/* VLAN of untagged frames; 0: there is none, they are dropped */
};

/*
 * A byte per VLAN, enum vlan_flag: all that is known of one VLAN is read at
 * once, so a frame never sees half of a change.
 */
struct port_vlans {
	__u8 vid[4096];
};

struct state {
	__u32 epoch;	     /* written to stations that send */
	__u32 pad;
	__u64 lease_renewed; /* jiffies */
	__u64 lease_length;  /* jiffies */
};

/* What all programs read of every frame, in one place. */
struct live_data {
	struct state state;
	struct port port[MAX_PORTS]; /* by slot */
};

struct counter {
	__u64 packets; /* frames as on the wire: a GRO sk_buff counts its segments */
	__u64 bytes;
};

struct port_counters {
	struct counter verdict[VERDICTS];
	__u64 aggregates; /* sk_buffs that GRO had put together; tc alone sees them */
	__u64 segments;	  /* the frames in them */
};

/* What a traced program decided last (CONFIG_TRACE). */
struct answer {
	enum verdict verdict;
	__u32 slot; /* where it goes; only for redirected and redirect_failed */
	enum tag_change tag;
	__u32 tci; /* of the tag that is pushed or set */
	__u32 vid; /* the VLAN it travels in; 0: the bridge knows none, or it is in none */
	enum vlan_flag here; /* what its port is in that VLAN */
};

/* Another number of lines is set by the loader, a power of two. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 128);
	__type(key, __u32);
	__type(value, struct station_line);
} stations SEC(".maps");

/* By slot; read only in a VLAN-aware bridge. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_PORTS);
	__type(key, __u32);
	__type(value, struct port_vlans);
} vlans SEC(".maps");

/*
 * Where XDP redirects to, by slot. The kernel empties an entry when its device
 * goes, and a redirect to an empty entry passes the frame. (Keyed by slot, so
 * the array is as good as DEVMAP_HASH and saves its hash.)
 */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__uint(max_entries, MAX_PORTS);
	__type(key, __u32);
	__type(value, __u32);
} egress SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, MAX_PORTS);
	__type(key, __u32);
	__type(value, struct port_counters);
} counters SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct answer);
} answers SEC(".maps");

/* Set by the loader, then frozen: the verifier removes the branches not taken. */
const volatile struct port_config config = {};

/*
 * A global variable and no map of its own kind: its address is known when the
 * program is loaded, which saves looking it up. User space writes it through a
 * mapping, 64 bits at once.
 */
struct live_data live SEC(".data.live");

#endif
