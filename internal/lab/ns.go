// SPDX-License-Identifier: Apache-2.0

package lab

import "github.com/xdpl2/xdpl2/internal/netns"

// NS is a network namespace with the lab's traffic, captures and bridge
// settings.
type NS struct{ *netns.NS }

// NewNS makes an anonymous namespace with its loopback up. The label is used
// in messages only.
func NewNS(label string) (*NS, error) { return wrap(netns.New(label)) }

func wrap(ns *netns.NS, err error) (*NS, error) {
	if err != nil {
		return nil, err
	}
	return &NS{ns}, nil
}
