// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"encoding/json"
	"fmt"
	"os"
)

// Places inside a guest.
const (
	PlanPath   = "/etc/plan.json" // the Plan
	ModulesDir = "/lib/modules"   // modules by name, and their order
	TestsDir   = "/tests"         // one folder a package, named as in the module
	Busybox    = "/bin/busybox"

	PackagesDir = "/packages" // OpenWrt packages, for the tests that install them
)

// ModuleOrder is the file in ModulesDir that names the modules in the order in
// which they are loaded.
const ModuleOrder = "order"

// Plan is what /init does in one guest.
type Plan struct {
	Kernel   string    `json:"kernel"`             // the runner's name of the kernel
	HideBTF  bool      `json:"hide_btf,omitempty"` // imitate a kernel without BTF
	Shell    *Shell    `json:"shell,omitempty"`    // a shell on the console instead of the packages
	Env      []string  `json:"env,omitempty"`      // environment of every program
	Args     []string  `json:"args,omitempty"`     // arguments of every test binary
	Packages []Package `json:"packages,omitempty"` // run in this order
}

// Package is one test binary.
type Package struct {
	Path   string `json:"path"`   // import path
	Dir    string `json:"dir"`    // folder it runs in
	Binary string `json:"binary"` // the test binary
}

// Hostname is a guest's name, and Prompt what its shell shows at first.
const (
	Hostname = "guest"
	Prompt   = Hostname + ":~# "
)

// Shell is an interactive session.
type Shell struct {
	Welcome string `json:"welcome"`
	Term    string `json:"term"`
	Rows    uint16 `json:"rows"`
	Columns uint16 `json:"columns"`
}

// ReadPlan reads the plan inside a guest.
func ReadPlan() (*Plan, error) {
	data, err := os.ReadFile(PlanPath)
	if err != nil {
		return nil, fmt.Errorf("read plan: %w", err)
	}
	var p Plan
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, fmt.Errorf("read plan %s: %w", PlanPath, err)
	}
	return &p, nil
}
