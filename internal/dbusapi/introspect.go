// SPDX-License-Identifier: Apache-2.0

package dbusapi

import (
	"fmt"
	"strings"

	"github.com/xdpl2/xdpl2/internal/api"
)

const (
	propertiesInterface = "org.freedesktop.DBus.Properties"
	introspectable      = "org.freedesktop.DBus.Introspectable"
)

// signals are the kinds of event that are told.
var signals = []string{api.EventPort, api.EventStation, api.EventEngine, api.EventConfig, api.EventCalibrate}

var introspection = describe()

// describe writes the XML that Introspect answers. It is short and has nothing
// in it that XML would have to escape.
func describe() string {
	var b strings.Builder
	b.WriteString(`<!DOCTYPE node PUBLIC "-//freedesktop//DTD D-BUS Object Introspection 1.0//EN" "http://www.freedesktop.org/standards/dbus/1.0/introspect.dtd">
<node>
 <interface name="` + introspectable + `">
  <method name="Introspect"><arg name="xml" type="s" direction="out"/></method>
 </interface>
 <interface name="` + propertiesInterface + `">
  <method name="Get"><arg name="interface" type="s" direction="in"/><arg name="name" type="s" direction="in"/><arg name="value" type="v" direction="out"/></method>
  <method name="GetAll"><arg name="interface" type="s" direction="in"/><arg name="values" type="a{sv}" direction="out"/></method>
  <method name="Set"><arg name="interface" type="s" direction="in"/><arg name="name" type="s" direction="in"/><arg name="value" type="v" direction="in"/></method>
  <signal name="PropertiesChanged"><arg name="interface" type="s"/><arg name="changed" type="a{sv}"/><arg name="invalidated" type="as"/></signal>
 </interface>
 <interface name="` + Interface + `">
`)
	for _, m := range api.Methods() {
		fmt.Fprintf(&b, "  <method name=%q>\n", camel(m.Name))
		for _, a := range m.Args {
			kind := "s"
			if a.Kind == api.Integer {
				kind = "i"
			}
			fmt.Fprintf(&b, "   <arg name=%q type=%q direction=\"in\"/>\n", a.Name, kind)
		}
		b.WriteString("   <arg name=\"result\" type=\"a{sv}\" direction=\"out\"/>\n  </method>\n")
	}
	for _, kind := range signals {
		fmt.Fprintf(&b, "  <signal name=%q><arg name=\"event\" type=\"a{sv}\"/></signal>\n", camel(kind))
	}
	for _, p := range properties {
		fmt.Fprintf(&b, "  <property name=%q type=%q access=\"read\"><annotation name=\"org.freedesktop.DBus.Property.EmitsChangedSignal\" value=\"%v\"/></property>\n", p.name, p.signature, p.emits)
	}
	b.WriteString(" </interface>\n</node>\n")
	return b.String()
}
