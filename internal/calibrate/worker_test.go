// SPDX-License-Identifier: Apache-2.0

package calibrate

import (
	"context"
	"encoding/json"
	"errors"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"github.com/xdpl2/xdpl2/internal/api"
)

// script has a shell play the worker.
func script(text string) Command {
	return func(int) *exec.Cmd { return exec.Command("/bin/sh", "-c", text) }
}

func TestAsk(t *testing.T) {
	table, err := json.Marshal(said{Result: example()})
	if err != nil {
		t.Fatal(err)
	}
	busy, err := json.Marshal(said{Failure: api.FailureOf(api.ErrBusy)})
	if err != nil {
		t.Fatal(err)
	}
	const progress = `echo '{"progress":{"done":1,"of":2,"text":"tcp"}}'; `
	for name, c := range map[string]struct {
		script string
		want   string // of the error; empty: the table
	}{
		"well":          {progress + progress + "echo '" + string(table) + "'", ""},
		"refused":       {progress + progress + "echo '" + string(busy) + "'", api.ErrBusy.Error()},
		"died":          {progress + progress + "echo 'panic: oh' >&2; exit 2", "exit status 2: panic: oh"},
		"silent":        {progress + progress + "true", "said nothing"},
		"talks rubbish": {progress + progress + "echo rubbish; exec sleep 60", "ended: signal: killed"},
	} {
		var told []api.CalibrationProgress
		got, err := script(c.script).Ask(t.Context(), 1, func(p api.CalibrationProgress) { told = append(told, p) })
		if c.want == "" && (err != nil || !reflect.DeepEqual(got, example())) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if len(told) != 2 || told[0] != (api.CalibrationProgress{Done: 1, Of: 2, Text: "tcp"}) {
			t.Errorf("%s: told %+v", name, told)
		}
	}
	if _, err := script("echo '"+string(busy)+"'").Ask(t.Context(), 1, nil); !errors.Is(err, api.ErrBusy) {
		t.Errorf("the kind of a failure is lost: %v", err)
	}
	missing := Command(func(int) *exec.Cmd { return exec.Command("/nonexistent/xdpl2") })
	if _, err := missing.Ask(t.Context(), 1, nil); err == nil || !strings.Contains(err.Error(), "start a process") {
		t.Errorf("%v", err)
	}
}

func TestAskIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	// exec: the shell itself must be what is killed.
	_, err := script(`echo '{"progress":{}}'; exec sleep 60`).Ask(ctx, 1, func(api.CalibrationProgress) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
