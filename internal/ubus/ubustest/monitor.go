// SPDX-License-Identifier: Apache-2.0

package ubustest

import "github.com/xdpl2/xdpl2/internal/ubus/wire"

// monitor is a client that hears of every message.
type monitor struct {
	client *client
	seq    uint16
}

// callMonitor answers calls of ubusd's monitor object, which is for root only.
func (b *bus) callMonitor(cl *client, _ *wire.Message, method string, _ []byte, _ bool) int {
	if cl.UID != 0 || cl.GID != 0 {
		return statusPermissionDenied
	}
	remove := func(m *monitor) bool { return m.client == cl }
	switch method {
	case "add":
		b.monitors = append(without(b.monitors, remove), &monitor{client: cl})
	case "remove":
		b.monitors = without(b.monitors, remove)
	default:
		return statusMethodNotFound
	}
	return statusOK
}

// monitor tells the monitors of a message from a client, or to it.
func (b *bus) monitor(cl *client, m *wire.Message, sent bool) {
	if len(b.monitors) == 0 {
		return
	}
	body := wire.Body{}.
		Uint32(wire.MonitorClient, cl.id).
		Uint32(wire.MonitorPeer, m.Peer).
		Uint32(wire.MonitorSeq, uint32(m.Seq)).
		Uint32(wire.MonitorType, uint32(m.Type)).
		Bool(wire.MonitorSend, sent).
		Bytes(wire.MonitorData, m.Body)
	for _, mon := range b.monitors {
		mon.seq++
		b.send(mon.client, &wire.Message{Type: wire.Monitor, Seq: mon.seq, Body: body})
	}
}
