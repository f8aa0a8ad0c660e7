// SPDX-License-Identifier: Apache-2.0

// Package bpf holds the data path: the C programs, and the Go bindings and
// objects that bpf2go makes of them for both byte orders. The objects are
// committed, so that building xdpl2 needs Go alone; `make generate` makes them
// again, and CI compares.
package bpf

//go:generate go tool bpf2go -cc clang-16 -strip llvm-strip-16 -target bpfel,bpfeb -go-package bpf -type verdict -type mode -type config_flag -type port_flag -type station_word -type station -type station_line -type port -type state -type counter -type port_counters -type answer -type vlan_flag -type tag_change -type port_vlans Datapath xdpl2.c -- -O2 -mcpu=v2 -nostdinc -Wall -Werror -Wextra -Wno-unused-parameter
