//go:build ignore
// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Programs that take one step of the data path, none or several times as `knobs`
 * say. Both ways are the same machine code with another number in memory, so
 * what differs between them is the step and nothing else. They are not part of
 * the router's program.
 */
#include "../../bpf/decision.h"

#define MOST_TIMES 16
#define STRIDE 40503 /* odd: visits every address of a power of two */

static long (*const bpf_fib_lookup)(void *ctx, void *params, int size, __u32 flags) = (void *)69;

enum {
	MAP_TYPE_HASH = 1,
	FAMILY_IPV4 = 2,
};

/* Set by user space between runs. */
struct step_knobs {
	__u32 times;	/* the step is taken in each run; at most MOST_TIMES */
	__u32 redirect; /* ifindex that frames leave by; 0: they are passed */
	__u32 mask;	/* addresses that are looked up in turn, less one */
	__u32 shift;	/* where in an address its number is */
	__u64 address;	/* the first one */
	__u32 ifindex;	/* of the port that is looked up, and of the fib look-up */
	__u32 source;	/* addresses of the fib look-up */
	__u32 destination;
	__u32 pad;
};

/* What has been done, for user space to compare. */
struct step_done {
	__u64 runs;
	__u64 steps;
	__u64 right; /* steps that did what they should */
	__u32 cursor;
	__u32 pad;
};

volatile struct step_knobs knobs SEC(".data.knobs");
volatile struct step_done done SEC(".data.done");

/* An ordinary hash map, to compare the station table with. */
struct {
	__uint(type, MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, __u64);
	__type(value, struct station);
} plain SEC(".maps");

/* Ports by ifindex, as a program needs them that was not loaded for its port. */
struct {
	__uint(type, MAP_TYPE_HASH);
	__uint(max_entries, MAX_PORTS);
	__type(key, __u32);
	__type(value, struct port);
} ports SEC(".maps");

/* struct bpf_fib_lookup of include/uapi/linux/bpf.h */
struct fib {
	__u8 family, l4_protocol;
	__be16 sport, dport;
	__u16 tot_len;
	__u32 ifindex;
	__u32 tos;
	__be32 src[4], dst[4];
	__be16 h_vlan_proto, h_vlan_TCI;
	__u8 smac[6], dmac[6];
};

static __always_inline int finish(__u32 times, __u32 right)
{
	__u32 out = knobs.redirect;

	done.runs++;
	done.steps += times;
	done.right += right;
	return out ? bpf_redirect(out, 0) : XDP_PASS;
}

/*
 * A program that takes a step: an expression that is 1 if it did what it
 * should. What it may use: ctx, and first, the number of an address.
 */
#define STEP(name, step)                                                     \
	SEC("xdp")                                                             \
	int name(struct xdp_md *ctx)                                           \
	{                                                                      \
		__u32 i, times = knobs.times, right = 0, first = done.cursor;     \
                                                                             \
		done.cursor = first + STRIDE;                                     \
		for (i = 0; i < MOST_TIMES; i++) {                                \
			if (i >= times)                                             \
				break;                                                 \
			right += (step);                                            \
			barrier();                                                  \
		}                                                                 \
		return finish(times, right);                                      \
	}

#define barrier() asm volatile("" ::: "memory")

static __always_inline __u64 address_of(__u32 number)
{
	return knobs.address | (__u64)(number & knobs.mask) << knobs.shift;
}

static __always_inline int step_station(__u32 number)
{
	__u64 word;

	return find_station(&word, address_of(number), 0) != NULL;
}

static __always_inline int step_hash(__u32 number)
{
	__u64 key = address_of(number);

	return bpf_map_lookup_elem(&plain, &key) != NULL;
}

static __always_inline int step_vlan(struct xdp_md *ctx)
{
	return push_tag_xdp(ctx, 10) && pop_tag_xdp(ctx);
}

static __always_inline int step_counters(void)
{
	struct decision made = { .verdict = REDIRECTED };
	struct frame frame = { .len = 64, .packets = 1 };

	account(&made, &frame);
	return 1;
}

static __always_inline int step_port_hash(void)
{
	__u32 ifindex = knobs.ifindex;
	const struct port *port = bpf_map_lookup_elem(&ports, &ifindex);

	return port && port->flags & PORT_ENABLED;
}

static __always_inline int step_fib(struct xdp_md *ctx)
{
	struct fib fib = { .family = FAMILY_IPV4, .tot_len = 64 };

	fib.ifindex = knobs.ifindex;
	fib.src[0] = knobs.source;
	fib.dst[0] = knobs.destination;
	return !bpf_fib_lookup(ctx, &fib, sizeof(fib), 0);
}

STEP(loop, 1)
STEP(devmap, bpf_redirect_map(&egress, config.slot, XDP_PASS) == XDP_REDIRECT)
STEP(station, step_station(first + i * STRIDE))
STEP(hash, step_hash(first + i * STRIDE))
STEP(vlan, step_vlan(ctx))
STEP(count, step_counters())
STEP(port_constant, (port_of(config.slot)->flags & PORT_ENABLED) != 0)
STEP(port_hash, step_port_hash())
STEP(fib, step_fib(ctx))

char _license[] SEC("license") = "Dual BSD/GPL";
