// SPDX-License-Identifier: Apache-2.0

// Package ubusapi offers package api on ubus: an object xdpl2 with its methods,
// and its events under the names xdpl2.port, xdpl2.station and so on.
//
// An answer is the JSON of api's types. A failed call is answered with an
// api.Failure, which says in words what the status only classes. Lists come in
// pages, since a message has a limit.
package ubusapi

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/ubus"
	"github.com/xdpl2/xdpl2/internal/ubus/blobmsg"
)

// Path is the object's name; events are named below it.
const Path = "xdpl2"

// Options say where ubusd is.
type Options struct {
	Socket string // empty: ubus.DefaultSocket
	Log    *slog.Logger
}

// eventTimeout is how long an event may wait for ubusd. The next one is told
// what was missed.
const eventTimeout = 5 * time.Second

// Run offers a service on ubus until the context ends. While ubusd is not there
// it is waited for.
func Run(ctx context.Context, s api.Service, o Options) error {
	client := ubus.New(ubus.Options{Socket: o.Socket, Log: o.Log})
	defer client.Wait()
	defer client.Close()
	object := ubus.Object{Path: Path}
	for i := range api.Methods() {
		object.Methods = append(object.Methods, method(s, &api.Methods()[i]))
	}
	registration, err := client.Register(object)
	if err != nil {
		return err
	}
	events, err := s.Events(ctx)
	if err != nil {
		return fmt.Errorf("tell ubus what happens: %w", err)
	}
	missed := 0
	for event := range events {
		event.Missed += missed
		if err := send(ctx, client, registration, event); err != nil {
			missed = event.Missed + 1
			continue
		}
		missed = 0
	}
	<-ctx.Done() // calls are answered until then
	return nil
}

// send tells an event to those who listen to events (ubus listen) and to those
// who are subscribed to the object, as browsers are through uhttpd.
func send(ctx context.Context, client *ubus.Client, r *ubus.Registration, event api.Event) error {
	ctx, cancel := context.WithTimeout(ctx, eventTimeout)
	defer cancel()
	if r.HasSubscribers() {
		if err := r.Notify(ctx, event.Kind, event); err != nil {
			return err
		}
	}
	return client.SendEvent(ctx, Path+"."+event.Kind, event)
}

var types = map[api.Kind]blobmsg.Type{api.Text: blobmsg.String, api.Integer: blobmsg.Int32}

func method(s api.Service, m *api.Method) ubus.Method {
	out := ubus.Method{Name: m.Name, Handler: func(ctx context.Context, r *ubus.Request) error {
		args := api.Values{}
		for _, f := range r.Args {
			switch v := f.Value.(type) {
			case string:
				if f.Name != ubus.SessionKey {
					args[f.Name] = v
				}
			case int32:
				args[f.Name] = int64(v)
			}
		}
		result, err := m.CallPaged(ctx, s, args)
		if err != nil {
			failure := api.FailureOf(err)
			if rerr := r.Reply(failure); rerr != nil {
				return rerr
			}
			return fmt.Errorf("%w: %w", status(failure), err)
		}
		return r.Reply(result)
	}}
	// What is missing is for api to say, in words.
	for _, a := range m.Args {
		out.Args = append(out.Args, ubus.Arg{Name: a.Name, Type: types[a.Kind]})
	}
	return out
}

func status(f *api.Failure) ubus.Status {
	switch f.Kind {
	case api.FailedUsage:
		return ubus.StatusInvalidArgument
	case api.FailedUnknownPort:
		return ubus.StatusNotFound
	case api.FailedNoData:
		return ubus.StatusNoData
	}
	return ubus.StatusUnknownError
}
