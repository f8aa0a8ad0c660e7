// SPDX-License-Identifier: Apache-2.0

// Package bridger keeps OpenWrt's bridger off the ports that xdpl2
// accelerates: two fast paths on one port would each hide the other's frames
// from the bridge. bridger has named blacklists for that on ubus.
package bridger

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/xdpl2/xdpl2/internal/ubus"
)

const (
	object    = "bridger"
	method    = "set_blacklist"
	listName  = "xdpl2"
	newObject = "ubus.object.add"

	// callTimeout bounds a call; stopping waits for one at most.
	callTimeout = 3 * time.Second
)

// repeat is how often the list is told again although nothing is known to have
// changed: a bridger that comes back with ubusd itself may be on the bus before
// we hear of new objects.
const repeat = 30 * time.Second

// Options say where ubusd is.
type Options struct {
	Socket string // empty: ubus.DefaultSocket
	Log    *slog.Logger
}

// Blacklist is xdpl2's list of devices that bridger leaves alone.
type Blacklist struct {
	opts    Options
	devices chan []string // the latest list, until it is taken
}

// New makes an empty list. Nothing is told to anybody before Run.
func New(o Options) *Blacklist {
	return &Blacklist{opts: o, devices: make(chan []string, 1)}
}

// Set changes the list. It does not wait; only the latest list counts.
func (b *Blacklist) Set(devices []string) {
	select {
	case <-b.devices: // nobody has taken the one before
	default:
	}
	b.devices <- slices.Clone(devices)
}

// listed is what goes over the bus.
type listed struct {
	Name    string   `json:"name"`
	Devices []string `json:"devices"`
}

// Run tells bridger the list whenever it changes or bridger starts, until the
// context ends; then it takes the list back. Neither ubusd nor bridger need to
// be there.
func (b *Blacklist) Run(ctx context.Context) error {
	client := ubus.New(ubus.Options{Socket: b.opts.Socket, CallTimeout: callTimeout})
	defer client.Wait()
	defer client.Close()
	started := make(chan struct{}, 1)
	_, err := client.Listen(func(e ubus.Event) {
		if path, _ := e.Data.Text("path"); path == object {
			select {
			case started <- struct{}{}:
			default:
			}
		}
	}, newObject)
	if err != nil {
		return err
	}
	again := time.NewTicker(repeat)
	defer again.Stop()
	var devices []string
	// told: bridger may have a list of ours that is not empty. A call that was
	// cut off may have reached it.
	told, named := false, false
	for {
		select {
		case devices = <-b.devices:
		case <-started:
		case <-again.C:
		case <-ctx.Done():
			if told {
				last, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
				defer cancel()
				b.tell(last, client, nil)
			}
			return nil
		}
		if len(devices) == 0 && !told {
			continue
		}
		if err := client.WaitConnected(ctx); err != nil {
			continue // the context has ended
		}
		told = told || len(devices) > 0
		if !b.tell(ctx, client, devices) {
			continue
		}
		told = len(devices) > 0
		if told && !named {
			named = true
			b.opts.Log.Info("bridger leaves the accelerated ports alone", "devices", devices)
		}
	}
}

// tell hands bridger a list and reports whether it took it.
func (b *Blacklist) tell(ctx context.Context, client *ubus.Client, devices []string) bool {
	list := listed{Name: listName, Devices: []string{}}
	for _, d := range devices {
		list.Devices = append(list.Devices, literal.Replace(d))
	}
	_, err := client.Call(ctx, object, method, list)
	if err != nil && !errors.Is(err, ubus.StatusNotFound) && ctx.Err() == nil { // not found: no bridger
		b.opts.Log.Warn("bridger does not take the list of accelerated ports", "error", err)
	}
	return err == nil
}

// literal makes a name a pattern of fnmatch that matches this name alone.
var literal = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`)
