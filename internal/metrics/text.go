// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// The text format of Prometheus, version 0.0.4. Libraries for it keep the
// values themselves, or add hundreds of kilobytes to the router's program;
// here every value is read when it is asked for.

// family is one metric with all its samples.
type family struct {
	name, kind, help string // kind: counter, gauge
	samples          []sample
}

type sample struct {
	labels []string // name, value, name, value
	value  string
}

func (f *family) number(value float64, labels ...string) {
	f.samples = append(f.samples, sample{labels, strconv.FormatFloat(value, 'g', -1, 64)})
}

// count is for numbers that a float64 may not hold.
func (f *family) count(n uint64, labels ...string) {
	f.samples = append(f.samples, sample{labels, strconv.FormatUint(n, 10)})
}

var escapeLabel = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

func (f *family) write(b *bytes.Buffer) {
	if len(f.samples) == 0 {
		return
	}
	fmt.Fprintf(b, "# HELP %s %s\n# TYPE %s %s\n", f.name, f.help, f.name, f.kind)
	for _, s := range f.samples {
		b.WriteString(f.name)
		for i := 0; i < len(s.labels); i += 2 {
			separator := ','
			if i == 0 {
				separator = '{'
			}
			fmt.Fprintf(b, `%c%s="%s"`, separator, s.labels[i], escapeLabel.Replace(s.labels[i+1]))
		}
		if len(s.labels) > 0 {
			b.WriteByte('}')
		}
		fmt.Fprintf(b, " %s\n", s.value)
	}
}
