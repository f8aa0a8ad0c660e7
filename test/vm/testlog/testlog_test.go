// SPDX-License-Identifier: Apache-2.0

package testlog

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// Output as the testing package of Go 1.26 writes it, ^ standing for the
// marker.
const sample = `^=== RUN   TestA
^=== RUN   TestA/s
    a_test.go:3: hello
    a_test.go:3: no
        such kernel
^--- SKIP: TestA/s (0.00s)
^=== NAME  TestA
^=== RUN   TestA/p/q
^=== PAUSE TestA/p/q
^=== NAME  TestA
^=== RUN   TestA/f_x
    a_test.go:3: bad
        worse
^--- FAIL: TestA/f_x (0.00s)
^=== NAME  TestA
^=== CONT  TestA/p/q
no newline--- FAIL: TestFoo (0.0s)
--- FAIL: TestBar (0.0s)
^--- PASS: TestA/p/q (0.00s)
^--- FAIL: TestA (0.00s)
^=== NAME  
between tests
^=== RUN   TestB
without newline^--- PASS: TestB (1.25s)
^=== NAME  
^=== RUN   ExampleC
^--- PASS: ExampleC (0.00s)
^=== RUN   TestD
^--- FAIL: TestD (0.00s)
panic: x [recovered, repanicked]
`

func summary(tests []*Test) string {
	var b strings.Builder
	for _, t := range tests {
		fmt.Fprintf(&b, "%s %s %q\n", t.Name, t.Status, strings.Join(t.Output, "|"))
	}
	return b.String()
}

const sampleSummary = `TestA failed ""
TestA/s skipped "    a_test.go:3: hello|    a_test.go:3: no|        such kernel"
TestA/p/q passed "no newline--- FAIL: TestFoo (0.0s)|--- FAIL: TestBar (0.0s)"
TestA/f_x failed "    a_test.go:3: bad|        worse"
TestB passed "without newline"
ExampleC passed ""
TestD failed "panic: x [recovered, repanicked]"
`

func TestParser(t *testing.T) {
	text := strings.ReplaceAll(sample, "^", marker)
	for _, size := range []int{1, 2, 7, 64, len(text)} {
		t.Run(fmt.Sprintf("pieces of %d", size), func(t *testing.T) {
			var p Parser
			for rest := text; rest != ""; {
				n := min(size, len(rest))
				p.Write([]byte(rest[:n]))
				rest = rest[n:]
			}
			tests := p.Tests()
			if tests[4].Name != "TestB" || tests[4].Seconds != 1.25 {
				t.Errorf("%s took %v s, want TestB and 1.25 s", tests[4].Name, tests[4].Seconds)
			}
			if got := summary(tests); got != sampleSummary {
				t.Errorf("tests are\n%s\nwant\n%s", got, sampleSummary)
			}
		})
	}
}

func TestParserLines(t *testing.T) {
	var got []Line
	p := Parser{OnLine: func(l Line) { got = append(got, l) }}
	fmt.Fprintf(&p, "\x16=== RUN   TestA\nhalf\x16--- PASS: TestA (0.00s)\r\n\nPASS")
	p.Tests()
	want := []Line{
		{"=== RUN   TestA", true}, {"half", false}, {"--- PASS: TestA (0.00s)", true},
		{"", false}, {"PASS", false},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("lines are\n%v\nwant\n%v", got, want)
	}
}

func TestParserStatus(t *testing.T) {
	tests := []struct {
		name, output string
		want         string
	}{
		{"nothing printed", "", "TestX missing, TestY missing"},
		{"crash in the middle", "^=== RUN   TestX\npanic: runtime error\n", "TestX unfinished, TestY missing"},
		{"not marked", "--- PASS: TestX (0.00s)\n", "TestX missing, TestY missing"},
		{"unknown lines", "^=== RUN   TestX\n^=== ATTR  TestX key value\n^--- BENCH: TestX\n^x\n^\n^--- PASS: TestX (0.00s)\n",
			"TestX passed, TestY missing"},
		{"paused for ever", "^=== RUN   TestX\n^=== PAUSE TestX\n^=== RUN   TestY\n^--- PASS: TestY (0.00s)\n",
			"TestX unfinished, TestY passed"},
		{"subtest of an unfinished test", "^=== RUN   TestX\n^=== RUN   TestX/a\n^--- PASS: TestX/a (0.00s)\n",
			"TestX unfinished, TestY missing, TestX/a passed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var p Parser
			p.Expect("TestX", "TestY")
			p.Write([]byte(strings.ReplaceAll(tt.output, "^", marker)))
			var got []string
			for _, test := range p.Tests() {
				got = append(got, test.Name+" "+string(test.Status))
			}
			if s := strings.Join(got, ", "); s != tt.want {
				t.Errorf("got %s, want %s", s, tt.want)
			}
		})
	}
}

func TestReason(t *testing.T) {
	tests := []struct{ name, output, want string }{
		{"nothing logged", "just printed\n", "no reason given"},
		{"one line", "    a_test.go:12: needs tcx\n", "needs tcx"},
		{"the last of several", "    a_test.go:1: set up\n    a_test.go:2: needs tcx\n", "needs tcx"},
		{"several lines", "    a_test.go:2: needs\n        tcx\n", "needs tcx"},
		{"other output after it", "    a_test.go:2: needs tcx\nprinted\n", "needs tcx"},
		{"mark before a cleanup's words", "    a_test.go:2: not for guests: a benchmark\n    a_test.go:9: cleaned up\n",
			"not for guests: a benchmark"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var p Parser
			fmt.Fprintf(&p, "\x16=== RUN   TestX\n%s\x16--- SKIP: TestX (0.00s)\n", tt.output)
			if got := p.Tests()[0].Reason; got != tt.want {
				t.Errorf("reason is %q, want %q", got, tt.want)
			}
		})
	}
}
