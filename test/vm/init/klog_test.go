// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"syscall"
	"testing"

	"github.com/xdpl2/xdpl2/test/vm/guest"
)

func TestParseRecord(t *testing.T) {
	tests := []struct{ name, record, from, text string }{
		{"kernel", "6,339,5140900,-;NET: Registered\n", guest.FromKernel, "[    5.140900] NET: Registered"},
		{"kernel, with a dictionary", "4,1,1000000,-;WARNING: x\n SUBSYSTEM=net\n DEVICE=n8\n", guest.FromKernel, "[    1.000000] WARNING: x"},
		{"kernel, more fields", "30,1,7,-,caller=T1;x", guest.FromUser, "[    0.000007] x"},
		{"program", "12,2,3,-;WARNING: x\n", guest.FromUser, "[    0.000003] WARNING: x"},
		{"program, emergency", "8,2,3,-;x", guest.FromUser, "[    0.000003] x"},
		{"semicolon in the text", "6,1,0,-;a;b\n", guest.FromKernel, "[    0.000000] a;b"},
		{"not a record", "nonsense", guest.FromKernel, "nonsense"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			from, text := parseRecord(tt.record)
			if from != tt.from || text != tt.text {
				t.Errorf("got %s %q, want %s %q", from, text, tt.from, tt.text)
			}
		})
	}
}

func TestDescribe(t *testing.T) {
	for status, want := range map[syscall.WaitStatus]string{
		0:      guest.Exited,
		2 << 8: "exit status 2",
		9:      "signal: killed",
	} {
		if got := describe(status); got != want {
			t.Errorf("describe(%d) is %q, want %q", status, got, want)
		}
	}
}

func TestRunOutsideOfAGuest(t *testing.T) {
	if err := run(); err == nil {
		t.Error("no error")
	}
}
