// SPDX-License-Identifier: Apache-2.0

package ubusapi

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/jsonfields"
)

// TestDocumentIsComplete: docs/ubus.md names every method, argument and key.
func TestDocumentIsComplete(t *testing.T) {
	text, err := os.ReadFile("../../docs/ubus.md")
	if err != nil {
		t.Fatal(err)
	}
	document := string(text)
	for _, m := range api.Methods() {
		if !strings.Contains(document, "\n### "+m.Name+"\n") {
			t.Errorf("method %s is missing", m.Name)
		}
		for _, a := range m.Args {
			if !strings.Contains(document, "`"+a.Name+"`") {
				t.Errorf("argument %s of %s is missing", a.Name, m.Name)
			}
		}
	}
	seen := map[reflect.Type]bool{}
	var check func(reflect.Type)
	check = func(typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice:
			check(typ.Elem())
		case reflect.Struct:
			if seen[typ] || typ == reflect.TypeFor[time.Time]() {
				return
			}
			seen[typ] = true
			for i := range typ.NumField() {
				check(typ.Field(i).Type)
			}
			for _, f := range jsonfields.Of(typ) {
				if !strings.Contains(document, "`"+f.Name+"`") && !strings.Contains(document, `"`+f.Name+`"`) {
					t.Errorf("key %s of %v is missing", f.Name, typ)
				}
			}
		}
	}
	for _, v := range []any{api.Status{}, api.PortList{}, api.StationList{}, api.CounterList{}, api.Explanation{}, api.ReloadResult{}, api.Calibration{}, api.Event{}, api.Failure{}} {
		check(reflect.TypeOf(v))
	}
}
