/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fixed-width types and the compiler helpers that the programs use. Nothing
 * here comes from a libc or from the machine that compiles (-nostdinc), so the
 * objects are the same wherever they are built.
 */
#ifndef XDPL2_TYPES_H
#define XDPL2_TYPES_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

#define NULL ((void *)0)

#define __always_inline inline __attribute__((always_inline))
#define SEC(name) __attribute__((section(name), used))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* Read exactly once: what is read may change at any time. */
#define read_once(x) (*(const volatile typeof(x) *)&(x))

/* BTF-defined maps: see the kernel's Documentation/bpf/map_*.rst. */
#define __uint(name, val) int(*name)[val]
#define __type(name, val) typeof(val) *name

#define IS_LITTLE_ENDIAN (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)

#define bpf_htons(x) ((__be16)(IS_LITTLE_ENDIAN ? __builtin_bswap16((__u16)(x)) : (x)))

#define bpf_ntohs(x) ((__u16)bpf_htons(x))

/*
 * barrier_var keeps the compiler from merging or reordering computations on a
 * value in ways that the verifier of an old kernel cannot follow.
 */
#define barrier_var(var) asm volatile("" : "+r"(var))

#endif
