// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"fmt"
	"slices"
	"strings"
)

// A Target is an architecture as opkg and apk name it. Several of them may run
// the same binary, since Go does not tune for a core.
type Target struct {
	Arch string   // what `opkg print-architecture` prints
	Env  []string // what makes Go build for it
}

// All is the architecture of packages without binaries.
const All = "all"

// Targets are the architectures that packages are made for.
var Targets = []Target{
	{"aarch64_generic", []string{"GOARCH=arm64"}},
	{"aarch64_cortex-a53", []string{"GOARCH=arm64"}},
	{"aarch64_cortex-a72", []string{"GOARCH=arm64"}},
	{"x86_64", []string{"GOARCH=amd64"}},
	{"arm_cortex-a7_neon-vfpv4", []string{"GOARCH=arm", "GOARM=7"}},
	{"mips_24kc", []string{"GOARCH=mips", "GOMIPS=softfloat"}},
	{"mipsel_24kc", []string{"GOARCH=mipsle", "GOMIPS=softfloat"}},
	{"riscv64_generic", []string{"GOARCH=riscv64"}},
}

// key is the same for targets that run the same binary.
func (t Target) key() string { return strings.Join(t.Env, ",") }

// SelectTargets returns the targets that a list of architectures names, all of
// them for an empty list.
func SelectTargets(list []string) ([]Target, error) {
	if len(list) == 0 {
		return Targets, nil
	}
	var selected []Target
	for _, arch := range list {
		i := slices.IndexFunc(Targets, func(t Target) bool { return t.Arch == arch })
		if i < 0 {
			var known []string
			for _, t := range Targets {
				known = append(known, t.Arch)
			}
			return nil, fmt.Errorf("architecture %q is not known (expected one of %s)", arch, strings.Join(known, ", "))
		}
		selected = append(selected, Targets[i])
	}
	return selected, nil
}

// PlainTargets are the processors that the archives for a router without opkg
// and apk are made for, by Go's names.
var PlainTargets = []Target{
	{"arm64", []string{"GOARCH=arm64"}},
	{"amd64", []string{"GOARCH=amd64"}},
}
