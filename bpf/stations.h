/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The stations: which port an address is behind. Every frame asks twice, so it
 * must cost little: one cache line an address, and no call of a helper (a
 * kernel hash map costs three times as much).
 *
 * The table is an array of lines of 64 bytes, and a line has room for four
 * stations: a word and a mark each. The word is the whole station:
 *
 *	63               11    10      9     8 - 6   5 - 0
 *	| rest of address | OTHER | VALID | flags | slot |
 *
 * An address with its VLAN is a number of 60 bits. Mixed, it becomes another one,
 * and none is lost: the upper bits say which line, and the rest is kept in the
 * word, so that a word tells its address without holding all of it. Where the line is full the station is in a second one, which
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

static __always_inline struct station *find_in_line(__u64 *word, __u32 number, __u64 wanted)
{
	struct station_line *line = bpf_map_lookup_elem(&stations, &number);
	__u32 way;

	if (!line)
		return NULL;
#pragma unroll
	for (way = 0; way < STATION_WAYS; way++) {
		*word = read_once(line->station[way].word);
		if ((*word & ~(__u64)STATION_ANSWER) == wanted)
			return &line->station[way];
	}
	return NULL;
}

/* Seldom: only where a line is full, and for addresses that are unknown. */
static __attribute__((noinline)) struct station *find_in_second(__u32 number, __u64 wanted)
{
	__u64 word;

	return find_in_line(&word, number, wanted);
}

/*
 * Spreads the addresses of a network, which may differ in any few bits, over all
 * bits. The multiplier ends in four zero bits, so that the 60 bits of the result
 * are the upper ones. Every step can be undone.
 */
static __always_inline __u64 mix(__u64 key)
{
	key = (key ^ key >> STATION_FOLD) * config.multiplier;
	return (key ^ (key >> STATION_FOLD & ~0xfULL)) * STATION_MIX;
}

/* Returns NULL if an address is unknown; what its word was is read only once. */
static __always_inline struct station *find_station(__u64 *word, __u64 address, __u32 vlan)
{
	__u64 mixed = mix(address | (__u64)vlan << 48);
	__u64 rest = mixed << config.line_bits, wanted = rest | STATION_VALID;
	__u32 number = mixed >> (64 - config.line_bits);
	struct station *found = find_in_line(word, number, wanted);

	if (likely(found))
		return found;
	number ^= rest * STATION_MIX >> (64 - config.line_bits) | 1;
	wanted |= STATION_OTHER;
	found = find_in_second(number, wanted);
	if (found) {
		*word = read_once(found->word);
		if ((*word & ~(__u64)STATION_ANSWER) == wanted)
			return found;
	}
	*word = 0;
	return NULL;
}

#endif
