// SPDX-License-Identifier: Apache-2.0

// Package dbusapi offers package api on D-Bus: the name org.xdpl2, with an
// object /org/xdpl2 that has the interface org.xdpl2.Manager1.
//
// A method's arguments come in the order of api's declaration, its answer is
// one dictionary with the keys of the JSON. Who may call what is for the bus to
// say (files/etc/dbus-1/system.d/org.xdpl2.conf).
package dbusapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/xdpl2/xdpl2/internal/api"
)

// What the daemon is called on the bus.
const (
	Name      = "org.xdpl2"
	Path      = dbus.ObjectPath("/org/xdpl2")
	Interface = "org.xdpl2.Manager1"
)

// Options say which bus.
type Options struct {
	Address string // empty: the system bus
	Log     *slog.Logger
	// RetryMin and RetryMax are the shortest and the longest pause between
	// attempts to connect; 0: half a second, half a minute.
	RetryMin, RetryMax time.Duration
}

// Run offers a service on a bus until the context ends. A bus that is not there
// is waited for, which is told once.
func Run(ctx context.Context, s api.Service, o Options) error {
	if o.RetryMin == 0 {
		o.RetryMin, o.RetryMax = time.Second/2, 30*time.Second
	}
	events, err := s.Events(ctx)
	if err != nil {
		return fmt.Errorf("tell D-Bus what happens: %w", err)
	}
	missed := 0
	told := ""
	for pause := o.RetryMin; ctx.Err() == nil; pause = min(2*pause, o.RetryMax) {
		connected := time.Now()
		err := serve(ctx, s, o, events, &missed)
		if ctx.Err() != nil {
			break
		}
		var lost lostError
		if errors.As(err, &lost) {
			told = ""
		}
		if err.Error() != told { // once, not with every attempt
			o.Log.Warn("not on D-Bus", "error", err)
			told = err.Error()
		}
		if time.Since(connected) > o.RetryMax {
			pause = o.RetryMin
		}
		wait := time.NewTimer(pause)
		for waiting := true; waiting; {
			select {
			case event, ok := <-events: // nobody hears it
				if ok {
					missed += 1 + event.Missed
				} else {
					events = nil
				}
			case <-wait.C:
				waiting = false
			case <-ctx.Done():
				waiting = false
			}
		}
		wait.Stop()
	}
	return nil
}

// serve offers the service on one connection, until that or the context ends.
func serve(ctx context.Context, s api.Service, o Options, events <-chan api.Event, missed *int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	options := []dbus.ConnOption{dbus.WithContext(ctx), dbus.WithHandler(&object{s: s, ctx: ctx})}
	conn, err := connect(o.Address, options)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close()
	// Who has the name can be asked: what properties are told to have changed
	// from is known before.
	before, err := s.Status(ctx)
	if err != nil {
		return err
	}
	reply, err := conn.RequestName(Name, dbus.NameFlagDoNotQueue)
	if err != nil {
		return fmt.Errorf("take the name %s: %w", Name, err)
	}
	if reply != dbus.RequestNameReplyPrimaryOwner {
		return fmt.Errorf("take the name %s: another process has it", Name)
	}
	o.Log.Info("on D-Bus", "name", Name)
	for dirty := false; ; {
		select {
		case event, ok := <-events:
			if !ok {
				events = nil // the daemon is stopping; calls are answered until it has
				continue
			}
			event.Missed += *missed
			if err := conn.Emit(Path, Interface+"."+camel(event.Kind), dictOf(event)); err != nil {
				*missed = event.Missed + 1
				return lostError{err}
			}
			*missed = 0
			dirty = dirty || event.Kind != api.EventStation
			if !dirty || len(events) > 0 {
				continue
			}
			dirty = false
			now, err := s.Status(ctx)
			if err != nil {
				return err
			}
			if changes := changed(before, now); len(changes) > 0 {
				if err := conn.Emit(Path, propertiesInterface+".PropertiesChanged", Interface, changes, []string{}); err != nil {
					return lostError{err}
				}
			}
			before = now
		case <-conn.Context().Done():
			return lostError{errors.New("the bus has closed it")}
		}
	}
}

// lostError is the end of a connection that worked.
type lostError struct{ error }

func (e lostError) Error() string { return "connection lost: " + e.error.Error() }

func connect(address string, options []dbus.ConnOption) (*dbus.Conn, error) {
	if address == "" {
		return dbus.ConnectSystemBus(options...)
	}
	return dbus.Connect(address, options...)
}
