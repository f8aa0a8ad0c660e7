// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/lab"
	"github.com/xdpl2/xdpl2/internal/lab/nft"
)

// BenchmarkPoll is what is done every PollInterval: with nothing to look at,
// with the box full of rules that bridged frames do not meet, and with
// br_netfilter handing them over.
func BenchmarkPoll(b *testing.B) {
	l := lab.ForTest(b, lab.Options{Hosts: 2, NoIPv6: true})
	for _, c := range []struct {
		name   string
		chains int
		call   string
	}{{"nothing", 0, "0"}, {"60 chains", 60, "0"}, {"60 chains, br_netfilter", 60, "1"}} {
		b.Run(c.name, func(b *testing.B) {
			for i := range c.chains {
				chain, err := nft.NewChain(l.Router, nft.ChainOptions{Family: nft.Inet, Table: "fw4", Chain: fmt.Sprint("c", i), Hook: nft.Forward})
				if err == nil {
					err = chain.Accept()
				}
				if err != nil {
					b.Skipf("needs nftables (%v)", err)
				}
			}
			if err := l.Router.SetSysctl("net/bridge/bridge-nf-call-iptables", c.call); err != nil {
				b.Skipf("needs br_netfilter (%v)", err)
			}
			err := l.Router.Do(func() error {
				w, err := Open(Options{})
				if err != nil {
					return err
				}
				defer w.Close()
				// A loaded machine stretches the time, not the processor's.
				began := threadTime()
				for b.Loop() {
					w.poll()
					w.settle()
				}
				b.ReportMetric(float64(threadTime()-began)/float64(b.N), "cpu-ns/op")
				return nil
			})
			if err != nil {
				b.Fatal(err)
			}
		})
	}
}

// threadTime is the processor time of the calling thread, in ns; Do has locked
// the goroutine to it.
func threadTime() int64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &u) != nil {
		return 0
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
