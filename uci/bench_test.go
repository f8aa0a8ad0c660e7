// SPDX-License-Identifier: Apache-2.0

package uci

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// benchConfig is a file of n sections, as many named as not.
func benchConfig(n int) string {
	var b strings.Builder
	for i := range n {
		if i%2 == 0 {
			fmt.Fprintf(&b, "config station 's%d'\n", i)
		} else {
			b.WriteString("config station\n")
		}
		fmt.Fprintf(&b, "\toption mac '02:00:00:00:%02x:%02x'\n\toption port 'eth%d'\n\toption vlan \"%d\"\n\tlist tag 'a'\n\tlist tag 'b c'\n\n",
			i>>8, i&255, i%8, i%4094+1)
	}
	return b.String()
}

func BenchmarkLoad5000(b *testing.B) {
	tree := newTree(b, benchConfig(5000), "")
	b.ReportAllocs()
	for b.Loop() {
		if err := tree.LoadConfig("xdpl2", true); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLoad5000Staged(b *testing.B) {
	var staged strings.Builder
	for i := range 5000 {
		name := fmt.Sprintf("s%d", i)
		if i%2 == 1 {
			name = generatedName(i+1, "station")
		}
		fmt.Fprintf(&staged, "xdpl2.%s.port='eth9'\n", name)
	}
	tree := newTree(b, benchConfig(5000), staged.String())
	b.ReportAllocs()
	for b.Loop() {
		if err := tree.LoadConfig("xdpl2", true); err != nil {
			b.Fatal(err)
		}
	}
	if p, err := tree.Package("xdpl2"); err != nil || len(p.Ignored) > 0 {
		b.Fatal(err, p.Ignored[0])
	}
}

func BenchmarkSmall(b *testing.B) {
	tree := newTree(b, treeConfig, "xdpl2.main.mode='port'\n")
	b.ReportAllocs()
	for b.Loop() {
		if err := tree.LoadConfig("xdpl2", true); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCommit5000(b *testing.B) {
	text := benchConfig(5000)
	tree := newTree(b, text, "")
	for b.Loop() {
		write(b, filepath.Join(tree.saveDir, "xdpl2"), "xdpl2.s0.vlan='2'\n")
		if err := tree.CommitConfig("xdpl2"); err != nil {
			b.Fatal(err)
		}
	}
}
