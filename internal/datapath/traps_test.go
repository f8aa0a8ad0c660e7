// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/xdpl2/xdpl2/bpf"
)

// TestObjectAvoidsLosingRedirects: on 5.10 generic XDP loads programs that
// redirect to all ports at once (BPF_F_BROADCAST) or to another CPU, and then
// loses their frames without a trace. So the object must do neither: group
// frames are the bridge's, and every redirect falls back to the stack.
func TestObjectAvoidsLosingRedirects(t *testing.T) {
	spec, err := bpf.LoadDatapath()
	must(t, err)
	for name, m := range spec.Maps {
		switch m.Type {
		case ebpf.Array, ebpf.PerCPUArray, ebpf.DevMap:
		default:
			t.Errorf("map %s is a %s, which no kernel here was tested with", name, m.Type)
		}
		if m.Type == ebpf.DevMap && m.ValueSize != 4 {
			t.Errorf("map %s has programs in its entries, which 5.10 refuses in generic mode", name)
		}
	}
	redirects := 0
	for name, p := range spec.Programs {
		var flags *asm.Instruction // what was last written to R3, the helper's flags
		for i := range p.Instructions {
			ins := &p.Instructions[i]
			if ins.OpCode.Class().IsALU() && ins.Dst == asm.R3 {
				flags = ins
			}
			if !ins.IsBuiltinCall() || asm.BuiltinFunc(ins.Constant) != asm.FnRedirectMap {
				continue
			}
			redirects++
			const xdpPass = 2
			if flags == nil || flags.OpCode.Source() != asm.ImmSource || flags.Constant != xdpPass {
				t.Errorf("%s, instruction %d: bpf_redirect_map with flags other than XDP_PASS", name, i)
			}
		}
	}
	if redirects == 0 {
		t.Error("no redirect found: this test looks at nothing")
	}
}
