// SPDX-License-Identifier: Apache-2.0

package uci

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
)

var errPath = errors.New("not a path")

// uciText words an error as the uci program does.
func uciText(err error) string {
	var parse *ParseError
	switch {
	case errors.As(err, &parse):
		return parse.UCI()
	case errors.Is(err, errPath):
		return "Parse error"
	case errors.Is(err, ErrNotFound) || errors.Is(err, fs.ErrNotExist):
		return "Entry not found"
	case errors.Is(err, ErrInvalid):
		return "Invalid argument"
	}
	return err.Error()
}

// cli does what the uci program does with its arguments: it checks less than the
// methods of Tree, and words its errors differently.
func cli(tree *Tree, argv []string) outcome {
	o := outcome{Argv: argv}
	names := argv[0] == "-X"
	if names {
		argv = argv[1:]
	}
	fail := func(err error) outcome {
		o.Exit, o.Stderr = 1, "uci: "+uciText(err)+"\n"
		return o
	}
	switch cmd := argv[0]; {
	case cmd == "add" && len(argv) == 3:
		err := tree.stage(argv[1], func(p *Package) (changes []change, err error) {
			o.Stdout, changes = p.planAdd(argv[2])
			o.Stdout += "\n"
			return changes, nil
		})
		if err != nil {
			o = fail(err)
			o.Exit = 3 // here uci ends with libuci's number of the error
		}
		return o
	case cmd == "commit" && len(argv) == 1:
		configs, err := tree.Configs()
		if err != nil {
			return fail(err)
		}
		for _, name := range configs {
			if err := tree.commit(name, false); err != nil {
				o.Stderr += "uci: " + uciText(err) + "\n"
			}
		}
		return o
	case len(argv) != 2 || cmd == "add":
		o.Exit = 255
		return o
	}

	at, ok := parsePath(argv[1])
	if !ok {
		return fail(errPath)
	}
	if !validConfig(at.pkg) {
		return fail(ErrNotFound) // there can be no such file
	}
	if err := tree.LoadConfig(at.pkg, true); err != nil {
		return fail(err)
	}
	p, _ := tree.Package(at.pkg)
	if _, err := p.section(at.section); strings.Contains(argv[1], ".") && errors.Is(err, ErrInvalid) {
		return fail(err)
	}
	switch argv[0] {
	case "get":
		if err := get(p, at, &o); err != nil {
			o = fail(err)
		}
		return o
	case "show":
		o.Stdout = p.Show(names)
		return o
	case "changes":
		o.Stdout = p.Changes()
		return o
	case "commit":
		if err := tree.commit(at.pkg, false); err != nil {
			return fail(err)
		}
		return o
	case "revert":
		var err error
		if at.section == "" {
			err = tree.Revert(at.pkg)
		} else {
			err = tree.RevertChanges(at.pkg, at.section, at.option)
		}
		if err != nil {
			return fail(err)
		}
		return o
	}
	if argv[0] == "delete" && at.hasValue {
		if _, used := leadingInt(at.value); used == 0 {
			o.Exit = 1
			return o
		}
	}
	if err := tree.stage(at.pkg, func(p *Package) ([]change, error) { return planCommand(p, argv[0], at) }); err != nil {
		return fail(err)
	}
	return o
}

func get(p *Package, at path, o *outcome) error {
	if at.section == "" {
		return nil
	}
	s, opt, err := p.existing(at.section, at.option)
	if err != nil {
		return err
	}
	if opt == nil {
		o.Stdout = s.Type + "\n"
		return nil
	}
	values := slices.Clone(opt.Values)
	for i, v := range values {
		if opt.List && strings.ContainsAny(v, " \t\r\n") {
			values[i] = string(appendQuoted(nil, v))
		}
	}
	o.Stdout = strings.Join(values, " ") + "\n"
	return nil
}

func planCommand(p *Package, cmd string, at path) ([]change, error) {
	s, _, err := p.target(at.section, at.option)
	n, _ := leadingInt(at.value)
	switch {
	case at.section == "":
		return nil, ErrInvalid
	case cmd == "reorder":
		if s == nil {
			return nil, ErrNotFound
		}
		return p.planReorder(at.section, int(int32(n)))
	case cmd == "delete" && at.value != "":
		return p.planDeleteItem(at.section, at.option, int(int32(n)))
	case cmd == "delete":
		return p.planDelete(at.section, at.option)
	case !at.hasValue:
		return nil, ErrInvalid
	case cmd == "rename":
		return p.planRename(at.section, at.option, at.value)
	case cmd == "set" && at.option == "":
		return p.planSetSection(at.section, at.value)
	case err != nil:
		return nil, ErrInvalid // uci does not say that it is not there
	case cmd == "set":
		return p.planSet(at.section, at.option, at.value)
	case cmd == "add_list":
		return p.planAddItem(at.section, at.option, at.value)
	case cmd == "del_list":
		return p.planDeleteItems(at.section, at.option, at.value)
	}
	return nil, errors.New("no such command: " + cmd)
}
