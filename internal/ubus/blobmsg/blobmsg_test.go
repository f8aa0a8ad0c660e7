// SPDX-License-Identifier: Apache-2.0

package blobmsg

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/xdpl2/xdpl2/internal/ubus/blob"
)

type inner struct {
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
}

type base struct {
	Device string `json:"device"`
	Name   string `json:"name"` // hidden by outer's
	Skip   string `json:"-"`
	hidden int
}

type outer struct {
	base
	*inner
	Name    string            `json:"name"`
	Reason  string            `json:"reason,omitempty"`
	Since   time.Time         `json:"since,omitzero"`
	Engines map[string]string `json:"engines"`
	Parts   []inner           `json:"parts"`
	Deep    *outer            `json:"deep,omitempty"`
	NoTag   int
}

func TestMarshal(t *testing.T) {
	when := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		in   any
		want string // as libubox prints it
	}{
		"nil":         {nil, `{}`},
		"nil pointer": {(*outer)(nil), `{}`},
		"table":       {Table{{"b", int32(1)}, {"a", true}}, `{"b":1,"a":true}`},
		"map":         {map[string]any{"b": 1, "a": []string{"x"}, "c": nil}, `{"a":["x"],"b":1,"c":null}`},
		"struct": {outer{base: base{"eth1", "no", "no", 1}, Name: "yes", Since: when, Engines: map[string]string{"tc": "in use", "native": "no"}},
			`{"device":"eth1","name":"yes","since":"2026-03-01T12:00:00Z","engines":{"native":"no","tc":"in use"},"parts":[],"NoTag":0}`},
		"embedded": {&outer{inner: &inner{1, 2}, Reason: "r", Parts: []inner{{3, 4}}},
			`{"device":"","packets":1,"bytes":2,"name":"","reason":"r","engines":{},"parts":[{"packets":3,"bytes":4}],"NoTag":0}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Marshal(tt.in)
			if err != nil || got.String() != tt.want {
				t.Errorf("got %v, %v\nwant %s", got, err, tt.want)
			}
		})
	}
}

// TestTypes is about widths: a reader who knows the type must not be surprised
// by a value.
func TestTypes(t *testing.T) {
	tests := []struct{ in, want any }{
		{int(1), int32(1)}, {int(math.MinInt32), int32(math.MinInt32)},
		{int8(-1), int32(-1)}, {int16(-1), int16(-1)}, {int32(1), int32(1)}, {int64(1), int64(1)},
		{uint8(255), int32(255)}, {uint16(65535), int32(65535)}, {uint32(1), int64(1)}, {uint(1), int64(1)},
		{uint64(1), int64(1)}, {uint64(math.MaxUint64), int64(math.MaxInt64)},
		{float32(0.5), 0.5}, {1.5, 1.5}, {true, true}, {"s", "s"}, {nil, nil},
		{time.Second, int64(time.Second)},
		{[]int{1}, Array{int32(1)}}, {[2]bool{true}, Array{true, false}}, {[]string(nil), Array{}},
		{map[string]int{"a": 1}, Table{{"a", int32(1)}}},
		{[]any{nil, 1, "x", []any{}}, Array{nil, int32(1), "x", Array{}}},
	}
	if wide := math.MaxInt32; strconv.IntSize == 64 {
		wide++
		tests = append(tests, struct{ in, want any }{wide, int64(math.MaxInt32 + 1)})
	}
	for _, tt := range tests {
		list, err := Encode(Table{{"v", tt.in}})
		if err != nil {
			t.Errorf("%T %v: %v", tt.in, tt.in, err)
			continue
		}
		got, err := Decode(list)
		if err != nil || !reflect.DeepEqual(got, Table{{"v", tt.want}}) {
			t.Errorf("%T %v: got %v, %v, want %T %v", tt.in, tt.in, got, err, tt.want, tt.want)
		}
	}
}

func TestMarshalRefuses(t *testing.T) {
	type loop struct{ Next *loop }
	l := &loop{}
	l.Next = l
	for name, tt := range map[string]struct {
		in   any
		want error
	}{
		"a number":        {1, ErrUnsupported},
		"a list":          {[]int{1}, ErrUnsupported},
		"a channel":       {map[string]any{"c": make(chan int)}, ErrUnsupported},
		"keys of numbers": {map[int]int{1: 1}, ErrUnsupported},
		"a loop":          {l, ErrTooDeep},
	} {
		if got, err := Encode(tt.in); !errors.Is(err, tt.want) {
			t.Errorf("%s: got %x, %v", name, got, err)
		}
	}
}

func TestLimits(t *testing.T) {
	nested := func(n int) Table {
		v := Table{}
		for range n - 1 {
			v = Table{{"t", v}}
		}
		return v
	}
	list, err := Encode(nested(MaxDepth))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Decode(list); err != nil {
		t.Errorf("the deepest: %v", err)
	}
	if _, err := Encode(nested(MaxDepth + 1)); !errors.Is(err, ErrTooDeep) {
		t.Errorf("deeper: %v", err)
	}
	for _, kind := range []Type{Tab, Arr} {
		list, err := AppendRaw(nil, kind, "t", list)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Decode(list); !errors.Is(err, ErrTooDeep) {
			t.Errorf("%v around the deepest: %v", kind, err)
		}
	}
	if _, err := Encode(Table{{strings.Repeat("n", maxName), true}}); err != nil {
		t.Errorf("the longest name: %v", err)
	}
	if _, err := Encode(Table{{strings.Repeat("n", maxName+1), true}}); !errors.Is(err, ErrNameTooLong) {
		t.Errorf("a longer name: %v", err)
	}
	if _, err := Encode(Table{{"v", strings.Repeat("v", 1<<24)}}); !errors.Is(err, blob.ErrTooLong) {
		t.Errorf("16 MiB: %v", err)
	}
}

func TestNUL(t *testing.T) {
	list, err := Encode(Table{{"na\x00me", "te\x00xt"}})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Decode(list); err != nil || !reflect.DeepEqual(got, Table{{"na", "te"}}) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestGet(t *testing.T) {
	table := Table{{"s", "x"}, {"i", int32(1)}, {"i", int32(2)}, {"h", int16(3)}, {"l", int64(4)}, {"b", true},
		{"f", 0.5}, {"t", Table{{"x", nil}}}, {"a", Array{nil}}}
	if v, ok := table.Get("i"); !ok || v != int32(1) {
		t.Errorf("the first of two: %v", v)
	}
	if _, ok := table.Get("none"); ok {
		t.Error("there is one that is not there")
	}
	if v, ok := table.Text("s"); !ok || v != "x" {
		t.Errorf("text: %v", v)
	}
	for name, want := range map[string]int64{"i": 1, "h": 3, "l": 4} {
		if v, ok := table.Int(name); !ok || v != want {
			t.Errorf("int %s: %v", name, v)
		}
		if v, ok := table.Float(name); !ok || v != float64(want) {
			t.Errorf("float %s: %v", name, v)
		}
	}
	if v, ok := table.Bool("b"); !ok || !v {
		t.Errorf("bool: %v", v)
	}
	if v, ok := table.Float("f"); !ok || v != 0.5 {
		t.Errorf("float: %v", v)
	}
	if v, ok := table.Table("t"); !ok || len(v) != 1 {
		t.Errorf("table: %v", v)
	}
	if v, ok := table.Array("a"); !ok || len(v) != 1 {
		t.Errorf("array: %v", v)
	}
	for _, name := range []string{"s", "none"} {
		_, isInt := table.Int(name)
		_, isBool := table.Bool(name)
		_, isFloat := table.Float(name)
		_, isTable := table.Table(name)
		_, isArray := table.Array(name)
		if isInt || isBool || isFloat || isTable || isArray {
			t.Errorf("%s is something else", name)
		}
	}
}

func TestUnmarshal(t *testing.T) {
	var got struct {
		Port  string `json:"port"`
		Limit int    `json:"limit"`
		List  []int  `json:"list"`
	}
	if err := Unmarshal(Table{{"port", "eth1"}, {"limit", int64(7)}, {"list", Array{int32(1)}}, {"nan", math.NaN()}}, &got); err != nil {
		t.Fatal(err)
	}
	if got.Port != "eth1" || got.Limit != 7 || len(got.List) != 1 {
		t.Errorf("got %+v", got)
	}
	if err := Unmarshal(Table{{"limit", "x"}}, &got); err == nil {
		t.Error("a string is a number")
	}
}

func TestMarshalJSON(t *testing.T) {
	table := Table{{"b", int64(math.MaxInt64)}, {"a\n", Array{math.Inf(1), 0.5, nil, "<é>"}}, {"t", Table{}}}
	got, err := json.Marshal(table)
	if want := `{"b":9223372036854775807,"a\n":[null,0.5,null,"\u003cé\u003e"],"t":{}}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v\nwant %s", got, err, want)
	}
}
