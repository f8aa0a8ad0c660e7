// SPDX-License-Identifier: Apache-2.0

package dbusapi

import (
	"fmt"
	"reflect"

	"github.com/godbus/dbus/v5"

	"github.com/xdpl2/xdpl2/internal/api"
)

// property is a part of the status that can be read by itself.
type property struct {
	name, signature string
	// emits: a change is told (PropertiesChanged). What changes all the time
	// is not.
	emits bool
	get   func(*api.Status) any
}

var properties = []property{
	{"Version", "s", false, func(s *api.Status) any { return s.Version }},
	{"Kernel", "s", false, func(s *api.Status) any { return s.Kernel }},
	{"Uptime", "d", false, func(s *api.Status) any { return s.Uptime }},
	{"Enabled", "b", true, func(s *api.Status) any { return s.Enabled }},
	{"Mode", "s", true, func(s *api.Status) any { return s.Mode }},
	{"Topology", "s", true, func(s *api.Status) any { return s.Topology }},
	{"Bridge", "s", true, func(s *api.Status) any { return s.Bridge }},
	{"PortStates", "a{ss}", true, func(s *api.Status) any {
		return portTable(s, func(p *api.PortStatus) string { return p.State })
	}},
	{"PortReasons", "a{ss}", true, func(s *api.Status) any {
		return portTable(s, func(p *api.PortStatus) string { return p.Reason })
	}},
	{"PortEngines", "a{ss}", true, func(s *api.Status) any {
		return portTable(s, func(p *api.PortStatus) string { return p.Engine })
	}},
	{"Stations", "x", false, func(s *api.Status) any { return int64(s.Stations) }},
	{"AcceleratedShare", "d", false, func(s *api.Status) any { return s.Accelerated }},
	{"ConfigErrors", "as", true, func(s *api.Status) any { return texts(s.ConfigErrors) }},
	{"ConfigWarnings", "as", true, func(s *api.Status) any { return texts(s.ConfigWarnings) }},
}

func portTable(s *api.Status, of func(*api.PortStatus) string) map[string]string {
	t := map[string]string{}
	for i := range s.Ports {
		t[s.Ports[i].Device] = of(&s.Ports[i])
	}
	return t
}

func texts(problems []api.Problem) []string {
	out := make([]string, len(problems))
	for i, p := range problems {
		out[i] = p.Text
	}
	return out
}

// properties finds a method of org.freedesktop.DBus.Properties.
func (o *object) properties(name string) *method {
	switch name {
	case "Get":
		return &method{in: []any{"", ""}, call: func(in []any) ([]any, error) {
			iface, name := in[0].(string), in[1].(string)
			for i := range properties {
				p := &properties[i]
				if p.name != name || iface != Interface && iface != "" {
					continue
				}
				s, err := o.s.Status(o.ctx)
				if err != nil {
					return nil, errorOf(err)
				}
				return []any{dbus.MakeVariant(p.get(s))}, nil
			}
			return nil, dbus.NewError("org.freedesktop.DBus.Error.UnknownProperty", []any{fmt.Sprintf("%s has no property %s", iface, name)})
		}}
	case "GetAll":
		return &method{in: []any{""}, call: func(in []any) ([]any, error) {
			all := dict{}
			if iface := in[0].(string); iface != Interface && iface != "" {
				return []any{all}, nil
			}
			s, err := o.s.Status(o.ctx)
			if err != nil {
				return nil, errorOf(err)
			}
			for _, p := range properties {
				all[p.name] = dbus.MakeVariant(p.get(s))
			}
			return []any{all}, nil
		}}
	case "Set":
		return &method{in: []any{"", "", dbus.MakeVariant("")}, call: func([]any) ([]any, error) {
			return nil, dbus.NewError("org.freedesktop.DBus.Error.PropertyReadOnly", []any{"all properties are read-only: change the UCI configuration and call Reload"})
		}}
	}
	return nil
}

// changed returns those of the properties whose change is told that differ.
func changed(before, now *api.Status) dict {
	out := dict{}
	for _, p := range properties {
		if p.emits && (before == nil || !reflect.DeepEqual(p.get(before), p.get(now))) {
			out[p.name] = dbus.MakeVariant(p.get(now))
		}
	}
	return out
}
