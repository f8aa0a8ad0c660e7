// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/ether"
	"github.com/xdpl2/xdpl2/internal/lab"
	"github.com/xdpl2/xdpl2/internal/rig"
)

// traffic keeps a load coming until it is stopped.
func traffic(t *testing.T, send func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(testContext(t))
	done := make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			if err := send(ctx); err != nil && ctx.Err() == nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	return func() {
		t.Helper()
		cancel()
		must(t, <-done)
	}
}

// decision waits until auto has measured, and returns the engine and why the
// other one is not used.
func (b *box) decision(device string) (engine, why string) {
	b.wait("auto to have measured", func() bool {
		p := b.portStatus(device)
		engine = p.Engine
		why = p.Engines[map[string]string{"tc": "generic", "generic": "tc"}[engine]]
		return strings.HasPrefix(why, "auto measured ")
	})
	return engine, why
}

// TestAdaptMeasures is TestAdapt with the clocks of this machine, and with roomy
// frames, for which generic really costs less.
func TestAdaptMeasures(t *testing.T) {
	rig.Require(t)
	if !rig.HasLiveFrames() {
		t.Skip("needs live frames (Linux 5.18)")
	}
	r, err := rig.New(t.Context(), rig.Options{})
	must(t, err)
	t.Cleanup(func() { r.Close() })
	conf := fmt.Sprintf("config xdpl2 'main'\n\toption enabled '1'\nconfig port\n\toption device '%s'\nconfig port\n\toption device '%s'\n", r.Ingress, r.Egress)
	b := newBox(t, &lab.Lab{Router: &lab.NS{NS: r.Router}}, conf)

	smallUDP := func(ctx context.Context) error {
		_, err := r.Slice(ctx, rig.Load{Input: rig.Roomy, Length: 60}, rig.MaxSlice)
		return err
	}
	// A busy machine's trial may end without a decision; the next one would be a
	// minute later.
	const tries = 3
	for try := 1; ; try++ {
		b.start("--trust-frames")
		stop := traffic(t, smallUDP)
		engine, why := b.decision(r.Ingress)
		stop()
		t.Logf("%s: %s", engine, why)
		if engine == "generic" {
			break
		}
		b.end(0xf)
		if try == tries {
			t.Skipf("generic is not 1.10 times as fast here, or the machine is too busy to tell: %s", why)
		}
	}
	changes := followEngine(t, b, r.Ingress)
	segments := ether.TCP(ether.TCPSpec{
		Dst: rig.Destination, Src: rig.Source, DstIP: netip.MustParseAddr("192.0.2.2"), SrcIP: netip.MustParseAddr("192.0.2.1"),
		DstPort: 5001, SrcPort: 40000, Length: 1514,
	}, 1000)
	stop := traffic(t, func(context.Context) error { return r.Send(segments) })
	began := time.Now()
	e := changes.expect("tc")
	t.Logf("back on tc after %v", e.Time.Sub(began))
	b.wait("tc to show what GRO gains", func() bool {
		return strings.Contains(b.portStatus(r.Ingress).Engines["generic"], "GRO puts")
	})
	stop()
	stop = traffic(t, smallUDP)
	if e = changes.expect("generic"); !e.Measured.Earlier {
		t.Errorf("measured anew: %+v", e.Measured)
	}
	stop()
	if p := b.portStatus(r.Ingress); p.State != api.Accelerating || p.EngineChanges != 3 {
		t.Errorf("%+v", p)
	}
}
