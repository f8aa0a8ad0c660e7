// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The manual page, the reference and the completion of the command line are
// made of the commands themselves. They are made here, not in the program, so
// that a router need not carry what makes them:
//
//	go test ./cmd/xdpl2 -run TestDocumentsAreCurrent -update

var update = flag.Bool("update", false, "write the documents that are generated from the commands")

var documents = map[string]func() string{
	"docs/xdpl2.8": manualPage,
	"docs/cli.md":  reference,
	"files/usr/share/bash-completion/completions/xdpl2": completion,
}

func TestDocumentsAreCurrent(t *testing.T) {
	for name, text := range documents {
		path := filepath.Join("../..", name)
		if *update {
			must(t, os.MkdirAll(filepath.Dir(path), 0o755))
			must(t, os.WriteFile(path, []byte(text()), 0o644))
		}
		have, err := os.ReadFile(path)
		if os.IsNotExist(err) && !isSourceTree() {
			t.Skip("not for guests: needs the sources")
		}
		if err != nil || string(have) != text() {
			t.Errorf("%s differs from what the commands say (%v): make generate", name, err)
		}
	}
}

func isSourceTree() bool {
	_, err := os.Stat("../../go.mod")
	return err == nil
}

// shared are the options that every command takes.
func sharedOptions() []*flag.Flag {
	fs := flag.NewFlagSet("", flag.ContinueOnError)
	sharedFlags(fs, &env{})
	return all(fs)
}

// own are the options that are a command's alone.
func own(c *command) []*flag.Flag {
	fs := c.flagSet(&env{})
	return slices.DeleteFunc(all(fs), func(f *flag.Flag) bool {
		return slices.ContainsFunc(sharedOptions(), func(s *flag.Flag) bool { return s.Name == f.Name })
	})
}

func all(fs *flag.FlagSet) (flags []*flag.Flag) {
	fs.VisitAll(func(f *flag.Flag) { flags = append(flags, f) })
	return flags
}

// value is what an option takes, for people; "" if it is a switch.
func value(f *flag.Flag) string {
	name, _ := flag.UnquoteUsage(f)
	return name
}

func usage(f *flag.Flag) string {
	_, text := flag.UnquoteUsage(f)
	if d := defaultOf(f); d != "" {
		text += " (default " + d + ")"
	}
	return text
}

func synopsis(c *command) string {
	return strings.TrimSpace(fmt.Sprintf("xdpl2 %s [OPTION]... %s", c.name, c.args))
}

const exitStatus = `| code | meaning |
|---|---|
| 0 | fine |
| 1 | failed; why is on standard error |
| 2 | a mistake on the command line |
| 3 | the daemon is not running |
`

// reference writes docs/cli.md.
func reference() string {
	var b strings.Builder
	b.WriteString(`<!-- SPDX-License-Identifier: Apache-2.0 -->
<!-- Generated from cmd/xdpl2 by make generate; do not edit. -->
# The command line

` + "`xdpl2 COMMAND --help`" + ` says the same. Bash completes commands, options and devices where
bash-completion is installed.

## Options of every command

They may stand before the command, too.

| option | meaning |
|---|---|
`)
	row := func(f *flag.Flag) {
		fmt.Fprintf(&b, "| `%s` | %s |\n", strings.TrimSpace("--"+f.Name+" "+value(f)), usage(f))
	}
	for _, f := range sharedOptions() {
		row(f)
	}
	b.WriteString("\n## Exit codes\n\n" + exitStatus)
	for _, c := range commands() {
		fmt.Fprintf(&b, "\n## %s\n\n    %s\n\n%s.\n", c.name, synopsis(c), c.short)
		if c.long != "" {
			fmt.Fprintf(&b, "\n%s\n", c.long)
		}
		if flags := own(c); len(flags) > 0 {
			b.WriteString("\n| option | meaning |\n|---|---|\n")
			for _, f := range flags {
				row(f)
			}
		}
	}
	return b.String()
}

// roff escapes text for a manual page.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

// manualPage writes docs/xdpl2.8.
func manualPage() string {
	var b strings.Builder
	b.WriteString(`.\" SPDX-License-Identifier: Apache-2.0
.\" Generated from cmd/xdpl2 by make generate; do not edit.
.TH XDPL2 8 "2026-11-30" "xdpl2" "System administration"
.SH NAME
xdpl2 \- Layer\-2 forwarding that is faster than the Linux bridge
.SH SYNOPSIS
.B xdpl2
.I COMMAND
.RI [ OPTION ]...
.SH DESCRIPTION
The daemon reads
.IR /etc/config/xdpl2 ,
attaches a small BPF program to the ports that are chosen there, and keeps it in
step with the kernel's bridge.
Frames between known stations take the short way; everything else goes to the
bridge.
The other commands ask the daemon over its control socket, except for
.BR daemon ,
.B check
and
.BR cleanup .
.SH COMMANDS
`)
	option := func(f *flag.Flag) {
		fmt.Fprintf(&b, ".TP\n.BR %s", roff("--"+f.Name))
		if v := value(f); v != "" {
			fmt.Fprintf(&b, ` " \fI%s\fR"`, roff(v))
		}
		fmt.Fprintf(&b, "\n%s\n", roff(usage(f)))
	}
	for _, c := range commands() {
		fmt.Fprintf(&b, ".SS %s\n%s.\n", roff(strings.TrimSpace(c.name+" "+c.args)), roff(c.short))
		if c.long != "" {
			fmt.Fprintf(&b, ".PP\n%s\n", roff(c.long))
		}
		for _, f := range own(c) {
			option(f)
		}
	}
	b.WriteString(".SH OPTIONS\nEvery command takes these.\n")
	for _, f := range sharedOptions() {
		option(f)
	}
	b.WriteString(`.SH EXIT STATUS
.TP
.B 0
Fine.
.TP
.B 1
Failed; why is on standard error.
.TP
.B 2
A mistake on the command line.
.TP
.B 3
The daemon is not running.
.SH FILES
.TP
.I /etc/config/xdpl2
The configuration, a UCI file.
.TP
.I /tmp/.uci/xdpl2
Staged changes to it; they count.
.TP
.I /var/run/xdpl2/control.sock
The daemon's control socket: HTTP with JSON, for root alone.
.SH SEE ALSO
.BR bridge (8),
.BR tc (8)
`)
	return b.String()
}

// completion writes the completion for bash.
func completion() string {
	var names []string
	for _, c := range commands() {
		names = append(names, c.name)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `# SPDX-License-Identifier: Apache-2.0
# Generated from cmd/xdpl2 by make generate; do not edit.
# shellcheck shell=bash

_xdpl2() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local command='' i word options
	COMPREPLY=()
	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		case $word in
		%s) ((i++)) ;;
		-*) ;;
		*) command=$word && break ;;
		esac
	done

	case $prev in
`, strings.Join(withValue(), " | "))
	for _, kind := range []string{"DEVICE", "KINDS", "DIR"} {
		fmt.Fprintf(&b, "\t%s)\n\t\t%s\n\t\treturn\n\t\t;;\n", strings.Join(optionsOf(kind), " | "), map[string]string{
			"DEVICE": `mapfile -t COMPREPLY < <(compgen -W "$(ls /sys/class/net)" -- "$cur")`,
			"KINDS":  fmt.Sprintf(`mapfile -t COMPREPLY < <(compgen -W %q -- "$cur")`, strings.Join(eventKinds, " ")),
			"DIR":    `mapfile -t COMPREPLY < <(compgen -d -- "$cur")`,
		}[kind])
	}
	fmt.Fprintf(&b, "\t%s) return ;;\n\tesac\n\n\tcase $command in\n\t'') options=%q ;;\n\thelp) options=%q ;;\n",
		strings.Join(optionsOf(""), " | "),
		strings.Join(append(slices.Concat(names, []string{"help", "--help"}), long(sharedOptions())...), " "), strings.Join(names, " "))
	for _, c := range commands() {
		fmt.Fprintf(&b, "\t%s) options=%q ;;\n", c.name, strings.Join(append(append(long(own(c)), "--help"), long(sharedOptions())...), " "))
	}
	b.WriteString(`	*) return ;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
}
complete -F _xdpl2 xdpl2
`)
	return b.String()
}

func long(flags []*flag.Flag) (names []string) {
	for _, f := range flags {
		names = append(names, "--"+f.Name)
	}
	return names
}

// withValue lists all options of all commands that take a value.
func withValue() []string {
	return slices.Sorted(slices.Values(slices.Concat(optionsOf("DEVICE"), optionsOf("KINDS"), optionsOf("DIR"), optionsOf(""))))
}

// optionsOf lists those whose value is of a kind that can be completed: DEVICE,
// KINDS, DIR; "" is all others.
func optionsOf(kind string) []string {
	var names []string
	add := func(f *flag.Flag) {
		is := value(f)
		switch {
		case is == "":
			return
		case strings.HasSuffix(f.Name, "-dir"):
			is = "DIR"
		case is != "DEVICE" && is != "KINDS":
			is = ""
		}
		if name := "--" + f.Name; is == kind && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, f := range sharedOptions() {
		add(f)
	}
	for _, c := range commands() {
		for _, f := range own(c) {
			add(f)
		}
	}
	slices.Sort(names)
	return names
}

// TestCompletion asks bash what it would offer.
func TestCompletion(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil || !isSourceTree() {
		t.Skip("not for guests: needs bash and the sources")
	}
	for line, want := range map[string]string{
		"xdpl2 sta":                     "status stations",
		"xdpl2 help ev":                 "events",
		"xdpl2 --run-dir x st":          "status stations",
		"xdpl2 stations --po":           "--port",
		"xdpl2 stations --port l":       "lo",
		"xdpl2 events --kind st":        "station",
		"xdpl2 --config-dir /et":        "/etc",
		"xdpl2 top --interval 2 --coun": "--count",
		"xdpl2 top --count ":            "",
		"xdpl2 nothing --":              "",
	} {
		words := strings.Split(line, " ")
		script := `. ../../files/usr/share/bash-completion/completions/xdpl2; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _xdpl2; echo "${COMPREPLY[*]}"`
		cmd := exec.Command("bash", append([]string{"-c", script, "bash"}, words...)...)
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if got := strings.TrimSpace(string(out)); err != nil || got != want || errs.Len() > 0 {
			t.Errorf("%q offers %q (%v %s), want %q", line, got, err, errs.String(), want)
		}
	}
}
