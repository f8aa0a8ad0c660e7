// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"net"

	"github.com/xdpl2/xdpl2/internal/ether"
)

// BlockBySTP has the bridge itself block a port: it turns STP on and makes
// the hosts at two ports pretend to lead to the same, better bridge, so that
// the bridge sees a loop, keeps root and blocks p. The bridge keeps that state
// for 20 s. Both ports must have hosts and forward.
func (l *Lab) BlockBySTP(ctx context.Context, p, root *Port) error {
	if err := l.setSTP(true); err != nil {
		return err
	}
	better := net.HardwareAddr{0x02, 0, 0, 0, 0x53, 0x54}
	// The lower port number makes the first one the way to the root.
	for i, port := range []*Port{root, p} {
		host := l.hostAt(port)
		if host == nil {
			return fmt.Errorf("block port %s: no host at port %s", p.Name, port.Name)
		}
		s, err := host.Sender()
		if err != nil {
			return err
		}
		err = s.Send(ether.BPDU(better, 0, byte(1+i)))
		s.Close()
		if err != nil {
			return err
		}
	}
	return l.Router.WaitUntil(ctx, "port "+p.Name+" blocked", func() (bool, error) {
		s, err := l.PortState(p)
		return s == PortBlocking, err
	})
}

// Unblock turns STP off and makes a blocked port forward again. The port's
// link goes down and up on the way.
func (l *Lab) Unblock(ctx context.Context, p *Port) error {
	if err := l.setSTP(false); err != nil {
		return err
	}
	for _, up := range []bool{false, true} {
		if err := l.SetPortUp(p, up); err != nil {
			return err
		}
	}
	return l.WaitForwarding(ctx, p)
}

func (l *Lab) setSTP(on bool) error {
	value := "0"
	if on {
		value = "1"
	}
	return l.Router.WriteSys("class/net/"+BridgeName+"/bridge/stp_state", value)
}
