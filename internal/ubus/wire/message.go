// SPDX-License-Identifier: Apache-2.0

// Package wire is the ubus protocol's framing: messages and their attributes,
// as ubusd and its clients exchange them over a Unix stream socket.
//
// A message is a header of 8 bytes - version (0), type, 16-bit sequence number,
// 32-bit peer, big-endian - and one attribute (package blob) with id 0. The
// message is as long as that attribute says, without padding. Inside stands the
// list of the message's attributes.
//
// Up to 1 MiB of attribute, padded, is accepted; ubusd closes the connection of
// a client that announces more or less than 4 bytes.
package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/xdpl2/xdpl2/internal/ubus/blob"
)

// Type is a message's type.
type Type uint8

// The types.
const (
	Hello        Type = 0
	Status       Type = 1
	Data         Type = 2
	Ping         Type = 3
	Lookup       Type = 4
	Invoke       Type = 5
	AddObject    Type = 6
	RemoveObject Type = 7
	Subscribe    Type = 8
	Unsubscribe  Type = 9
	Notify       Type = 10
	Monitor      Type = 11
)

// String is the type's name.
func (t Type) String() string {
	names := [...]string{"HELLO", "STATUS", "DATA", "PING", "LOOKUP", "INVOKE", "ADD_OBJECT",
		"REMOVE_OBJECT", "SUBSCRIBE", "UNSUBSCRIBE", "NOTIFY", "MONITOR"}
	if int(t) < len(names) {
		return names[t]
	}
	return fmt.Sprintf("type %d", uint8(t))
}

// The objects that ubusd itself answers for. Clients and objects have random
// ids from FirstID on.
const (
	EventObject   = 1
	ACLObject     = 2
	MonitorObject = 3
	FirstID       = 1024
)

const (
	headerLen = 8
	// MaxLen is the limit of a message's attribute, its own word included.
	MaxLen = 1 << 20
)

// ErrLength tells of a message whose length nobody accepts.
var ErrLength = errors.New("message length out of range")

// Message is one message.
type Message struct {
	Version uint8
	Type    Type
	Seq     uint16
	Peer    uint32
	// OuterID and OuterExtended are the outer attribute's. Nobody looks at
	// them, but ubusd's answer to a PING has them.
	OuterID       uint8
	OuterExtended bool
	// Body is the inside of the outer attribute.
	Body []byte
}

// Append appends the message's bytes.
func (m *Message) Append(dst []byte) ([]byte, error) {
	if n := blob.Padded(blob.HeaderLen + len(m.Body)); n > MaxLen {
		return dst, fmt.Errorf("%w: %d bytes", ErrLength, n)
	}
	dst = append(dst, m.Version, byte(m.Type))
	dst = binary.BigEndian.AppendUint16(dst, m.Seq)
	dst = binary.BigEndian.AppendUint32(dst, m.Peer)
	return append(m.appendWord(dst), m.Body...), nil
}

func (m *Message) appendWord(dst []byte) []byte {
	dst, mark := blob.Begin(dst, m.OuterID, m.OuterExtended)
	w := binary.BigEndian.Uint32(dst[mark:])
	binary.BigEndian.PutUint32(dst[mark:], w|uint32(blob.HeaderLen+len(m.Body)))
	return dst
}

// Read reads one message whose attribute, padded, is limit bytes at most. At the
// end of the stream it returns io.EOF, within a message io.ErrUnexpectedEOF.
func Read(r io.Reader, limit int) (*Message, error) {
	var h [headerLen + blob.HeaderLen]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return nil, err
	}
	id, extended, n := blob.Word(h[headerLen:])
	if n < blob.HeaderLen || blob.Padded(n) > limit {
		return nil, fmt.Errorf("%w: %d bytes", ErrLength, n)
	}
	m := &Message{
		Version: h[0], Type: Type(h[1]),
		Seq:     binary.BigEndian.Uint16(h[2:]),
		Peer:    binary.BigEndian.Uint32(h[4:]),
		OuterID: id, OuterExtended: extended,
	}
	// What a message announces is only believed as it arrives.
	const first = 64 << 10
	n -= blob.HeaderLen
	if n <= first {
		m.Body = make([]byte, n)
		if _, err := io.ReadFull(r, m.Body); err != nil {
			return nil, unexpected(err)
		}
		return m, nil
	}
	var buf bytes.Buffer
	buf.Grow(first)
	if _, err := io.CopyN(&buf, r, int64(n)); err != nil {
		return nil, unexpected(err)
	}
	m.Body = buf.Bytes()
	return m, nil
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
