// SPDX-License-Identifier: Apache-2.0

// Package ubus is a client of OpenWrt's ubusd: it calls objects, offers
// objects, sends and hears events and notifications, and stays connected.
//
// What goes over the wire is in packages wire, blobmsg and blob. How a client
// has to behave:
//
//   - ubusd speaks first: a HELLO, whose peer is the client's id. Ids of
//     clients, objects and signatures are random and change when ubusd starts
//     again, so that everything has to be registered again.
//   - A request has a sequence number of the client's choice. It is answered by
//     any number of DATA, then one STATUS, with the same sequence number and
//     peer. The exception is an answered NOTIFY, which brings a STATUS from
//     ubusd with a list of subscribers and then one from each of them.
//   - A call goes through ubusd to the object's owner, and its answers go back.
//     To the owner a call is known by the caller's id (peer) and the caller's
//     sequence number; only the two together are unique.
//   - ubusd checks neither the method nor the arguments: the owner does. An
//     unknown method is METHOD_NOT_FOUND, a call without arguments (which is
//     not the same as empty arguments) or with wrong ones INVALID_ARGUMENT.
//   - When the owner of an object goes away or hangs, ubusd tells nobody: the
//     caller's own timer ends the call.
//   - What waits for a client that does not read is dropped beyond 1 MiB,
//     without a word. A message over 1 MiB costs its sender the connection; one
//     that ubusd makes longer on its way (it adds the caller's user and group to
//     a call) costs the receiver its place in the stream.
//
// A Client takes what it is given - objects, listeners, subscriptions - as lasting:
// it registers it as soon as there is a connection, again after each
// reconnection, and again after a while if ubusd refuses. Nothing that waits for
// ubusd or for another program blocks the reading of messages, so that all of
// the API may be used from inside handlers.
package ubus
