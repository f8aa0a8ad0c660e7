// SPDX-License-Identifier: Apache-2.0

package datapath

import "testing"

// What GRO has put together is counted beside the verdict, whatever that is,
// and summed; what came as it is is not, nor what an explanation tries.
func TestAggregatesAreCounted(t *testing.T) {
	d := world(t)
	forty := &skbContext{GSOSegs: 40, GSOSize: 1448}
	for _, step := range []struct {
		name    string
		engine  Engine
		program Program
		frame   []byte
		context any
		want    Aggregates // so far
	}{
		{"one frame", EngineTC, macMode, frame(b, a, ip4, 64), nil, Aggregates{}},
		{"one that GRO made, redirected", EngineTC, macMode, frame(b, a, ip4, 3000), forty, Aggregates{1, 40}},
		{"another, passed", EngineTC, macMode, frame(box, a, ip4, 3000), &skbContext{GSOSegs: 2, GSOSize: 1448}, Aggregates{2, 42}},
		{"on a wire", EngineTC, wire, frame(b, a, ip4, 3000), forty, Aggregates{3, 82}},
		{"of unknown segments", EngineTC, macMode, frame(b, a, ip4, 3000), &skbContext{GSOSize: 1448}, Aggregates{3, 82}},
		{"not redirected: the port is only watched", EngineTC, Program{Slot: in, Watch: true}, frame(b, a, ip4, 3000), forty, Aggregates{3, 82}},
		{"tried", EngineTC, Program{Slot: in, dryRun: true}, frame(b, a, ip4, 3000), forty, Aggregates{3, 82}},
		{"generic sees none", EngineGeneric, macMode, frame(b, a, ip4, 1500), nil, Aggregates{3, 82}},
	} {
		_, err := d.run(step.engine, step.program, step.frame, step.context)
		must(t, err)
		got, err := d.Traffic(in)
		must(t, err)
		if got.Aggregates != step.want {
			t.Errorf("%s: %+v, want %+v", step.name, got.Aggregates, step.want)
		}
		if same, err := d.Counters(in); err != nil || same != got.Counters {
			t.Errorf("%s: Counters and Traffic differ (%v)", step.name, err)
		}
		frames := uint64(0)
		for _, n := range got.Frames {
			frames += n
		}
		if counted := got.Counters.Accelerated().Packets + got.Counters.Passed().Packets; frames != counted {
			t.Errorf("%s: the CPUs counted %d frames, the verdicts %d", step.name, frames, counted)
		}
	}
	must(t, d.ResetCounters(in))
	if got, err := d.Traffic(in); err != nil || got.Aggregates != (Aggregates{}) {
		t.Errorf("after a reset: %+v, %v", got.Aggregates, err)
	}
}
