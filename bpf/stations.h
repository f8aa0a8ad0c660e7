/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The stations: which port an address is behind. Every frame asks twice, so it
 * must cost little: one cache line an address, and no call of a helper (a
 * kernel hash map costs three times as much).
 *
 * The table is an array of lines, and a line holds five words and their marks in
 * 64 bytes. A word is a whole station:
 *
 *	63               11    10      9     8 - 6   5 - 0
 *	| rest of address | OTHER | VALID | flags | slot |
 *
 * An address with its VLAN is a number of 60 bits. Multiplied by an odd number
 * it becomes another one, and none is lost: the upper bits say which line, and
 * the rest is kept in the word, so that a word tells its address without holding
 * all of it. Where the line is full the station is in a second one, which
 * follows from the rest (bit OTHER).
 *
 * A word is read and written at once: a reader sees a station as it was or as it
 * is, never half of a change, and a word can be given to another station at any
 * time. User space writes them through a mapping of the map's memory
 * (internal/datapath/table.go); programs only ever clear one, when a station has
 * moved, and mark who has sent something.
 */
#ifndef XDPL2_STATIONS_H
#define XDPL2_STATIONS_H

#include "headers/ether.h"
#include "maps.h"

struct station {
	__u64 word;   /* 0: there is none */
	__u64 *place; /* of the word */
	__u32 *seen;  /* its mark */
};

static __always_inline __u32 station_slot(const struct station *s)
{
	return s->word & STATION_SLOT;
}

/*
 * An address as a number of 48 bits in the byte order of the machine. Where the
 * two addresses of a frame are in memory is known modulo 4, as far as machines
 * go that care (NET_IP_ALIGN).
 */
static __always_inline __u64 destination_number(const struct ethhdr *eth)
{
	__u64 two = *(const __u16 *)eth->h_dest, four = *(const __u32 *)(eth->h_dest + 2);

	return IS_LITTLE_ENDIAN ? two | four << 16 : two << 32 | four;
}

static __always_inline __u64 source_number(const struct ethhdr *eth)
{
	__u64 four = *(const __u32 *)eth->h_source, two = *(const __u16 *)(eth->h_source + 4);

	return IS_LITTLE_ENDIAN ? four | two << 32 : four << 16 | two;
}

static __always_inline int find_in_line(struct station *out, __u32 number, __u64 wanted)
{
	struct station_line *line = bpf_map_lookup_elem(&stations, &number);
	__u32 way;

	if (!line)
		return 0;
#pragma unroll
	for (way = 0; way < STATION_WAYS; way++) {
		__u64 word = line->word[way];

		if ((word & ~(__u64)STATION_ANSWER) == wanted) {
			out->word = word;
			out->place = &line->word[way];
			out->seen = &line->seen[way];
			return 1;
		}
	}
	return 0;
}

/* Seldom: only where a line is full, and for addresses that are unknown. */
static __attribute__((noinline)) int find_in_second(struct station *out, __u32 line, __u64 rest)
{
	line ^= rest * SECOND_LINE >> (64 - config.line_bits) | 1;
	return find_in_line(out, line, rest | STATION_VALID | STATION_OTHER);
}

/* Returns 0 and leaves *out alone if the address is unknown. */
static __always_inline int find_station(struct station *out, __u64 address, __u32 vlan)
{
	/* The multiplier ends in four zero bits, so that the 60 bits are the upper ones. */
	__u64 mixed = (address | (__u64)vlan << 48) * config.multiplier;
	__u64 rest = mixed << config.line_bits;
	__u32 line = mixed >> (64 - config.line_bits);

	return likely(find_in_line(out, line, rest | STATION_VALID)) || find_in_second(out, line, rest);
}

#endif
