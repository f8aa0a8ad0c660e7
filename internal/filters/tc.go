// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/netdev"
)

const (
	tcmsgLen = 20 // struct tcmsg

	tcaKind, tcaOptions = 1, 2
	tcaBPFName          = 7 // TCA_BPF_NAME
	tcaCakeBaseRate     = 2 // TCA_CAKE_BASE_RATE64

	clsactIngress, clsactEgress = netlink.HANDLE_MIN_INGRESS, netlink.HANDLE_MIN_EGRESS
	ingressHandle               = 0xffff0000
)

// TC is the kind of tc filters.
const TC = "tc"

// passive qdiscs send what they get as soon as the device takes it: what goes
// past them has done nothing that anybody asked for. All others, also those
// that are not known here, count as shaping.
var passive = []string{
	"noqueue", "pfifo_fast", "pfifo", "bfifo", "mq", "fq_codel", "fq", "fq_pie", "codel", "pie", "sfq",
}

// qdisc is a queueing discipline of a device.
type qdisc struct {
	ifindex int
	kind    string
	shapes  bool
}

// readTC lists shapers and filters. ours is the name of our own programs.
func readTC(devs devices, ours string) (map[int]string, []Filter, error) {
	msgs, err := tcDump(unix.RTM_GETQDISC, unix.RTM_NEWQDISC, 0, 0)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return nil, nil, nil // a kernel without qdiscs
	}
	if err != nil {
		return nil, nil, fmt.Errorf("list qdiscs: %w", err)
	}
	shapers := map[int]string{}
	var filters []Filter
	for _, msg := range msgs {
		q, err := parseQdisc(msg)
		if err != nil {
			return nil, nil, fmt.Errorf("parse a qdisc: %w", err)
		}
		name := devs.names[q.ifindex]
		switch q.kind {
		case "clsact":
			for parent, place := range map[uint32]Place{clsactIngress: Arriving, clsactEgress: Leaving} {
				found, err := tcFilters(q.ifindex, parent, name, place, ours)
				if err != nil {
					return nil, nil, err
				}
				filters = append(filters, found...)
			}
		case "ingress":
			found, err := tcFilters(q.ifindex, ingressHandle, name, Arriving, ours)
			if err != nil {
				return nil, nil, err
			}
			filters = append(filters, found...)
		default:
			if q.shapes && shapers[q.ifindex] == "" {
				shapers[q.ifindex] = q.kind
			}
		}
	}
	return shapers, filters, nil
}

func tcDump(ask, answer, ifindex int, parent uint32) ([][]byte, error) {
	return netdev.Dump(func() ([][]byte, error) {
		req := nl.NewNetlinkRequest(ask, unix.NLM_F_DUMP)
		req.AddData(&nl.TcMsg{Family: unix.AF_UNSPEC, Ifindex: int32(ifindex), Parent: parent})
		return req.Execute(unix.NETLINK_ROUTE, uint16(answer))
	})
}

func parseQdisc(msg []byte) (qdisc, error) {
	if len(msg) < tcmsgLen {
		return qdisc{}, fmt.Errorf("message of %d bytes", len(msg))
	}
	q := qdisc{ifindex: int(nl.DeserializeTcMsg(msg).Ifindex)}
	attrs, err := attributes(msg[tcmsgLen:])
	if err != nil {
		return q, err
	}
	q.kind = text(attrs[tcaKind])
	q.shapes = !slices.Contains(passive, q.kind)
	if q.kind == "cake" { // without a rate it is another fq_codel
		options, err := attributes(attrs[tcaOptions])
		if err != nil {
			return q, err
		}
		q.shapes = number(options[tcaCakeBaseRate]) != 0
	}
	return q, nil
}

// tcFilters lists the filters of one hook but our own.
func tcFilters(ifindex int, parent uint32, device string, place Place, ours string) ([]Filter, error) {
	msgs, err := tcDump(unix.RTM_GETTFILTER, unix.RTM_NEWTFILTER, ifindex, parent)
	if errors.Is(err, unix.ENODEV) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
		return nil, nil // device or qdisc have just gone
	}
	if err != nil {
		return nil, fmt.Errorf("list the tc filters of %s: %w", device, err)
	}
	way := map[Place]string{Arriving: "ingress", Leaving: "egress"}[place]
	for _, msg := range msgs {
		what, err := parseTCFilter(msg)
		if err != nil {
			return nil, fmt.Errorf("parse a tc filter of %s: %w", device, err)
		}
		if what == "" || ours != "" && strings.HasPrefix(what, "bpf "+ours) {
			continue
		}
		return []Filter{{Kind: TC, Place: place, Device: device,
			Text:   fmt.Sprintf("there is a tc filter (%s) at the %s of %s", what, way, device),
			Remedy: fmt.Sprintf("tc filter show dev %s %s shows it", device, way)}}, nil
	}
	return nil, nil
}

// parseTCFilter says what kind of filter it is, "" for the heading that the
// kernel puts before the filters of one priority.
func parseTCFilter(msg []byte) (string, error) {
	if len(msg) < tcmsgLen {
		return "", fmt.Errorf("message of %d bytes", len(msg))
	}
	attrs, err := attributes(msg[tcmsgLen:])
	if err != nil {
		return "", err
	}
	data, ok := attrs[tcaOptions]
	if !ok {
		return "", nil
	}
	kind := text(attrs[tcaKind])
	if kind != "bpf" {
		return kind, nil
	}
	options, err := attributes(data)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(kind + " " + text(options[tcaBPFName])), nil
}
