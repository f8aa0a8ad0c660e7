// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func load(t *testing.T, text string, staged ...string) (*Config, Problems) {
	t.Helper()
	dir, save := t.TempDir(), t.TempDir()
	if err := os.Chmod(save, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, Package), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if len(staged) > 0 {
		if err := os.WriteFile(filepath.Join(save, Package), []byte(strings.Join(staged, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Load(dir, save)
}

const usual = `
config xdpl2 'main'
	option enabled '1'

config port
	option device 'eth1'

config port 'second'
	option device 'eth2'
	option enabled 'off'
	option target 'eth1'
	list pass 'group'
	option engine 'generic'

config station
	option mac '02:00:00:00:00:02'
	option port 'eth2'
`

func TestLoad(t *testing.T) {
	c, problems := load(t, usual)
	if len(problems) > 0 {
		t.Fatalf("problems: %v", problems)
	}
	want := Default().Main
	want.Enabled = true
	if c.Main != want {
		t.Errorf("main: got %+v, want %+v", c.Main, want)
	}
	if len(c.Ports) != 2 || len(c.Stations) != 1 {
		t.Fatalf("got %d ports and %d stations", len(c.Ports), len(c.Stations))
	}
	p := c.Ports[0]
	if p.Device != "eth1" || !p.Enabled || !p.PassLocal || !p.PassGroup || c.EngineOf(&p) != EngineAuto || p.Place.Section != "@port[0]" {
		t.Errorf("first port: %+v", p)
	}
	p = c.Ports[1]
	if p.Device != "eth2" || p.Enabled || p.PassLocal || !p.PassGroup || c.EngineOf(&p) != EngineGeneric || p.Target != "eth1" || p.Place.Section != "port 'second'" {
		t.Errorf("second port: %+v", p)
	}
	if s := c.Stations[0]; s.MAC != [6]byte{2, 0, 0, 0, 0, 2} || s.Port != "eth2" || s.VLAN != 0 {
		t.Errorf("station: %+v", s)
	}
}

func TestEmptyFileIsTheDefault(t *testing.T) {
	c, problems := load(t, "")
	if len(problems) > 0 || c.Main != Default().Main || c.Main.Enabled || c.Main.MaxStations != 4096 || c.Main.Bridge != "br-lan" {
		t.Errorf("got %+v, %v", c, problems)
	}
}

func TestStagedChangesCount(t *testing.T) {
	c, problems := load(t, usual, "xdpl2.main.mode='port'", "xdpl2.@port[0].target='eth2'", "xdpl2.main.engine='tc'")
	// The second line is one that libuci skips: staged changes name sections.
	if problems.Errors() == nil || !strings.Contains(problems.Error(), "target") {
		t.Errorf("mode port without a target: got %v, %v", c, problems)
	}
	if c, problems = load(t, usual, "xdpl2.main.engine='tc'"); len(problems) > 0 || c.Main.Engine != EngineTC {
		t.Errorf("got %+v, %v", c, problems)
	}
}

func TestMistakes(t *testing.T) {
	port := "config port\n\toption device 'eth1'\n"
	for _, c := range []struct {
		name, text string
		want       []string // each a line's parts, joined by " ... "
		warning    bool
	}{
		{name: "unknown mode", text: "config xdpl2 'main'\n\toption mode 'mc'\n",
			want: []string{"/xdpl2:2: section xdpl2 'main': option mode 'mc': not valid (did you mean mac?); expected one of mac, port"}},
		{name: "not a boolean", text: "config xdpl2 'main'\n\toption enabled 'maybe'\n",
			want: []string{":2: section xdpl2 'main': option enabled 'maybe': not valid; expected 0 or 1"}},
		{name: "number out of range", text: "config xdpl2 'main'\n\toption max_stations '7'\n",
			want: []string{"option max_stations '7': not valid; expected a number from 16 to 1048576"}},
		{name: "number of another kind", text: "config xdpl2 'main'\n\toption max_stations '0x100'\n",
			want: []string{"option max_stations '0x100'"}},
		{name: "the same port twice", text: port + port,
			want: []string{":3: section @port[1]: option device 'eth1': the same device is in section @port[0] already; expected each device once"}},
		{name: "target equal to itself", text: port + "\toption target 'eth1'\n",
			want: []string{"section @port[0]: option target 'eth1': is the port itself"}},
		{name: "mode port without target", text: "config xdpl2 'main'\n\toption mode 'port'\n" + port,
			want: []string{"section @port[0]: option target '': missing, and mode is port; expected the device that frames from eth1 leave by"}},
		{name: "no device", text: "config port\n\toption enabled '1'\n",
			want: []string{":1: section @port[0]: option device '': missing; expected the name of a network device"}},
		{name: "device name with a slash", text: "config port\n\toption device '../eth1'\n", want: []string{"option device '../eth1': not valid"}},
		{name: "device name too long", text: "config port\n\toption device 'abcdefghijklmnop'\n", want: []string{"at most 15 characters"}},
		{name: "the bridge as a port", text: "config port\n\toption device 'br-lan'\n", want: []string{"option device 'br-lan': is the bridge itself"}},
		{name: "the bridge as a target", text: port + "\toption target 'br-lan'\n", want: []string{"option target 'br-lan': is the bridge itself"}},
		{name: "group address as a station", text: port + "config station\n\toption mac '01:00:5e:00:00:01'\n\toption port 'eth1'\n",
			want: []string{"option mac '01:00:5e:00:00:01': not valid; expected the address of one host"}},
		{name: "station behind nothing", text: "config station\n\toption mac '02:00:00:00:00:01'\n\toption port 'eth1'\n",
			want: []string{"section @station[0]: option port 'eth1': no section of type port has this device"}},
		{name: "the same station twice", text: port + strings.Repeat("config station\n\toption mac '02:00:00:00:00:01'\n\toption port 'eth1'\n", 2),
			want: []string{"section @station[1]: option mac '02:00:00:00:00:01': the same station is in section @station[0] already"}},
		{name: "vlan out of range", text: port + "config station\n\toption mac '02:00:00:00:00:01'\n\toption port 'eth1'\n\toption vlan '4095'\n",
			want: []string{"option vlan '4095': not valid; expected a number from 1 to 4094"}},
		{name: "topology", text: "config xdpl2 'main'\n\toption topology 'replaced'\n", want: []string{"option topology 'replaced': not valid (did you mean replace?); expected one of coexist, replace"}},
		{name: "no address", text: "config xdpl2 'main'\n\toption metrics 'localhost:9420'\n",
			want: []string{":2: section xdpl2 'main': option metrics 'localhost:9420': not valid; expected an IP address and a port, like 127.0.0.1:9420 or [::1]:9420"}},
		{name: "no port", text: "config xdpl2 'main'\n\toption metrics '127.0.0.1'\n", want: []string{"option metrics '127.0.0.1': not valid"}},
		{name: "metrics for all", warning: true, text: "config xdpl2 'main'\n\toption metrics '[::]:9420'\n",
			want: []string{"section xdpl2 'main': option metrics '[::]:9420': whoever can reach this address may read the metrics"}},
		{name: "not built, ignored", warning: true, text: "config xdpl2 'main'\n" + port + "\tlist echo 'icmp'\nconfig tuning 'tuning'\n\toption enabled '1'\n",
			want: []string{"option echo 'icmp': not built", "section tuning 'tuning': option enabled '1': not built"}},
		{name: "all of them, not the first", text: "config xdpl2 'main'\n\toption mode 'x'\n\toption engine 'y'\n" + port + port,
			want: []string{"option mode 'x'", "option engine 'y'", "section @port[1]"}},
		{name: "unparsable", text: "config xdpl2 'main'\n\toption mode 'mac\n", want: []string{"/xdpl2:2: byte 14: EOF with unterminated '; expected"}},
		{name: "unknown option", warning: true, text: "config xdpl2 'main'\n\toption mod 'mac'\n",
			want: []string{":2: section xdpl2 'main': option mod 'mac': unknown option (did you mean mode?), ignored"}},
		{name: "unknown section type", warning: true, text: "config prot\n\toption device 'eth1'\n",
			want: []string{":1: section @prot[0]: unknown section type (did you mean port?), ignored; expected one of xdpl2, port, station, tuning"}},
		{name: "main under another name", warning: true, text: "config xdpl2 'mian'\n\toption enabled '1'\n",
			want: []string{"section xdpl2 'mian': ignored: only one section of this type is read; expected config xdpl2 'main'"}},
		{name: "list where one value is meant", warning: true, text: "config xdpl2 'main'\n\tlist mode 'port'\n\tlist mode 'mac'\n",
			want: []string{"option mode 'port mac': a list, of which the last value counts"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, problems := load(t, c.text)
			if (got == nil) == c.warning {
				t.Errorf("usable: %v, want %v", got != nil, c.warning)
			}
			if (problems.Err() == nil) != c.warning {
				t.Errorf("error: %v", problems.Err())
			}
			if len(problems) != len(c.want) {
				t.Fatalf("got %d problems, want %d:\n%s", len(problems), len(c.want), problems.Error())
			}
			for i, want := range c.want {
				if !strings.Contains(problems[i].Error(), want) {
					t.Errorf("got  %s\nwant %s", problems[i].Error(), want)
				}
			}
		})
	}
}

func TestMissingFile(t *testing.T) {
	dir := t.TempDir()
	c, problems := Load(dir, "")
	if c != nil || len(problems) != 1 {
		t.Fatalf("got %v, %v", c, problems)
	}
	for _, want := range []string{filepath.Join(dir, "xdpl2") + ": no such file", "--config-dir"} {
		if !strings.Contains(problems.Error(), want) {
			t.Errorf("%q lacks %q", problems.Error(), want)
		}
	}
}

func TestCheckDevices(t *testing.T) {
	c, _ := load(t, usual)
	problems := c.CheckDevices(func(name string) bool { return name != "eth2" })
	if len(problems) != 1 || !strings.Contains(problems[0].Error(), "section port 'second': option device 'eth2': no such network device") {
		t.Errorf("got %v", problems)
	}
}

func TestDeclarations(t *testing.T) {
	for _, o := range Options() {
		if o.Help == "" || o.Section == "" || o.Expected() == "" {
			t.Errorf("option %s.%s is not fully declared", o.Section, o.Name)
		}
		if o.Type == Choice && len(o.Choices) == 0 || o.Type == Number && o.Max == 0 {
			t.Errorf("option %s.%s takes no value", o.Section, o.Name)
		}
	}
}

func TestClosest(t *testing.T) {
	words := []string{"mode", "engine", "bridge", "enabled"}
	for word, want := range map[string]string{"mod": "mode", "Mode": "mode", "enable": "enabled", "bridgee": "bridge", "xyz": "", "": ""} {
		if got := closest(word, words); got != want {
			t.Errorf("closest(%q) = %q, want %q", word, got, want)
		}
	}
}
