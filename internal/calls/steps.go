// SPDX-License-Identifier: Apache-2.0

// Package calls measures what single steps of the data path cost: programs made
// of its headers take one step, or none, by a number in their memory, so that
// the machine code of both is the same and their difference is the step.
package calls

// Step is what is measured in a cell.
type Step struct {
	Name     string
	Says     string // what it is, for people
	program  string // in steps.c
	Stations int    // in the table; 0 where there is no table in it
	Access   string // near: the same station always; far: all in turn, from anywhere
}

// Access patterns.
const (
	near = "near"
	far  = "far"
)

// Steps returns all cells, and those that are measured under real frames as
// well, in the order in which they are shown.
func Steps(stations []int) (all, framed []Step) {
	simple := []Step{
		{Name: "loop alone", program: "loop", Says: "what taking any step once costs besides the step: a comparison and a branch"},
		{Name: "redirect map", program: "devmap", Says: "bpf_redirect_map: the target is looked up in the DEVMAP and noted; not the sending"},
		{Name: "tag push and pop", program: "vlan", Says: "an 802.1Q tag put into the frame and taken out again: two bpf_xdp_adjust_head and two copies of the addresses"},
		{Name: "counters", program: "count", Says: "packets and bytes of a verdict, per CPU"},
		{Name: "port by constant", program: "port_constant", Says: "the port's state, whose place the loader has written into the program (folded)"},
		{Name: "port by hash", program: "port_hash", Says: "the same looked up by ifindex in a hash map, as a program does that was not loaded for its port"},
		{Name: "fib lookup", program: "fib", Says: "bpf_fib_lookup of a route with a known neighbour: the reference"},
	}
	for _, s := range simple {
		all = append(all, s)
		if s.program != "loop" && s.program != "fib" {
			framed = append(framed, s)
		}
	}
	for i, n := range stations {
		for _, access := range []string{near, far} {
			table := Step{Name: "station", program: "station", Says: "an address in the station table", Stations: n, Access: access}
			all = append(all, table)
			if i == 0 && access == near || i == len(stations)-1 && access == far {
				framed = append(framed, table)
			}
			all = append(all, Step{Name: "hash map", program: "hash", Says: "the same in an ordinary hash map of the kernel, for comparison", Stations: n, Access: access})
		}
	}
	return all, framed
}
