// SPDX-License-Identifier: Apache-2.0

// Command reference writes what others need to know of the options, from their
// declarations: the UCI reference (docs/uci.md), or with the argument "luci" the
// list that LuCI's settings page is made of.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/xdpl2/xdpl2/internal/config"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "luci" {
		fmt.Fprint(os.Stdout, luci())
		return
	}
	fmt.Fprint(os.Stdout, text())
}

// option is an option's declaration as the settings page reads it.
type option struct {
	Section  string   `json:"section"`
	Name     string   `json:"name"`
	Type     string   `json:"type"`
	List     bool     `json:"list,omitempty"`
	Required bool     `json:"required,omitempty"`
	Default  string   `json:"default,omitempty"`
	Choices  []string `json:"choices,omitempty"`
	Min      uint32   `json:"min,omitempty"`
	Max      uint32   `json:"max,omitempty"`
	Help     string   `json:"help"`
	Expected string   `json:"expected"`
	Ignored  string   `json:"ignored,omitempty"`
}

// luci returns a LuCI module with all options.
func luci() string {
	var all []option
	for _, o := range config.Options() {
		all = append(all, option{o.Section, o.Name, string(o.Type), o.List, o.Required, o.Default, o.Choices, o.Min, o.Max, o.Help, o.Expected(), o.Ignored})
	}
	list, err := json.MarshalIndent(all, "\t", "\t")
	if err != nil {
		panic(err) // strings and numbers only
	}
	return fmt.Sprintf(`// SPDX-License-Identifier: Apache-2.0
// Generated from internal/config/declare.go by make generate; do not edit.
'use strict';
'require baseclass';

return baseclass.extend({
	options: %s
});
`, list)
}

const head = `<!-- SPDX-License-Identifier: Apache-2.0 -->
<!-- Generated from internal/config/declare.go by make generate; do not edit. -->
# The UCI file /etc/config/xdpl2

A missing section or option has the default below. Changes that are staged (` + "`uci set`" + `
without ` + "`uci commit`" + `) count, as they do for every init script. ` + "`xdpl2 check`" + ` says all
that is wrong with the file; unknown options and sections are warned about, and wrong
values are errors: a file with an error is not used, and the daemon goes on with what it
had. Booleans are 1, yes, on, true, enabled and 0, no, off, false, disabled.

    config xdpl2 'main'
            option enabled '1'

    config port
            option device 'eth1'

    config port
            option device 'eth2'
`

var sections = []struct{ kind, title, text string }{
	{"xdpl2", "config xdpl2 'main'", "Settings of the whole. Only the section with this name is read.\nWhat topology `replace` does is in [topology.md](topology.md).\nWhat `bypass_filters` is about is in [filters.md](filters.md).\nHow auto chooses, and what `adapt` does, is in [engines.md](engines.md)."},
	{"port", "config port", "One for each port; the name of the section does not matter. `echo` is not built in this\nversion."},
	{"station", "config station", "A station that is known without having been heard, beside those that the bridge learns.\nWhere the bridge knows better, the bridge is right."},
	{"tuning", "config tuning 'tuning'", "Not built in this version."},
}

func text() string {
	var b strings.Builder
	b.WriteString(head)
	for _, s := range sections {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| option | values | default | what it does |\n|---|---|---|---|\n", s.title, s.text)
		for _, o := range config.Options() {
			if o.Section == s.kind {
				fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", name(o), values(o), standard(o), cell(o.Help))
			}
		}
	}
	return b.String()
}

func name(o config.Option) string {
	if o.List {
		return "list " + o.Name
	}
	return o.Name
}

func values(o config.Option) string {
	switch o.Type {
	case config.Boolean:
		return "boolean"
	case config.Choice:
		return cell(strings.Join(o.Choices, ", "))
	}
	return cell(o.Expected())
}

func standard(o config.Option) string {
	switch {
	case o.Required:
		return "required"
	case o.Default == "":
		return "none"
	case o.List:
		return cell(o.Default)
	}
	return "`" + o.Default + "`"
}

func cell(s string) string { return strings.ReplaceAll(s, "|", "\\|") }
