// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"

	"github.com/xdpl2/xdpl2/internal/ubus/blob"
)

// The ids of a message's attributes.
const (
	AttrStatus      = 1  // 32 bits
	AttrObjPath     = 2  // string
	AttrObjID       = 3  // 32 bits
	AttrMethod      = 4  // string
	AttrObjType     = 5  // 32 bits
	AttrSignature   = 6  // blobmsg: a table per method
	AttrData        = 7  // blobmsg
	AttrTarget      = 8  // 32 bits
	AttrActive      = 9  // 8 bits
	AttrNoReply     = 10 // 8 bits
	AttrSubscribers = 11 // a list of attributes of 32 bits
	AttrUser        = 12 // string
	AttrGroup       = 13 // string
)

// The ids of a MONITOR message's attributes.
const (
	MonitorClient = 0 // 32 bits: whose connection
	MonitorPeer   = 1 // 32 bits
	MonitorSend   = 2 // 8 bits: 1 if ubusd sent the message
	MonitorSeq    = 3 // 32 bits
	MonitorType   = 4 // 32 bits
	MonitorData   = 5 // the message's body
)

// Attrs are a message's attributes. What a message does not have is zero; where
// that is a value, too, Has tells.
type Attrs struct {
	has uint16

	Status, ObjID, ObjType, Target uint32
	Path, Method, User, Group      string
	Signature, Data                []byte
	Active, NoReply                bool
	Subscribers                    []uint32
}

// Has is whether the message has that attribute.
func (a *Attrs) Has(id int) bool { return a.has&(1<<id) != 0 }

// Parse reads a message's attributes as ubusd does: one of the wrong size, or a
// string without NUL, is not there; of two the last counts; the first broken
// one ends the list. The slices share memory with the body.
func Parse(body []byte) *Attrs {
	a := &Attrs{}
	for raw := range blob.All(body) {
		if raw.ID > 0 && raw.ID <= AttrGroup && a.set(raw.ID, raw.Payload) {
			a.has |= 1 << raw.ID
		}
	}
	return a
}

func (a *Attrs) set(id uint8, p []byte) bool {
	switch id {
	case AttrStatus, AttrObjID, AttrObjType, AttrTarget:
		if len(p) != 4 {
			return false
		}
		v := binary.BigEndian.Uint32(p)
		switch id {
		case AttrStatus:
			a.Status = v
		case AttrObjID:
			a.ObjID = v
		case AttrObjType:
			a.ObjType = v
		default:
			a.Target = v
		}
	case AttrObjPath, AttrMethod, AttrUser, AttrGroup:
		if len(p) == 0 || p[len(p)-1] != 0 {
			return false
		}
		s, _ := blob.CString(p)
		switch id {
		case AttrObjPath:
			a.Path = s
		case AttrMethod:
			a.Method = s
		case AttrUser:
			a.User = s
		default:
			a.Group = s
		}
	case AttrActive, AttrNoReply:
		if len(p) != 1 {
			return false
		}
		if id == AttrActive {
			a.Active = p[0] != 0
		} else {
			a.NoReply = p[0] != 0
		}
	case AttrSignature:
		a.Signature = p
	case AttrData:
		a.Data = p
	case AttrSubscribers:
		a.Subscribers = nil
		for s := range blob.All(p) {
			if len(s.Payload) == 4 {
				a.Subscribers = append(a.Subscribers, binary.BigEndian.Uint32(s.Payload))
			}
		}
	}
	return true
}

// Body is a list of attributes under construction.
type Body []byte

// Uint32 appends a number.
func (b Body) Uint32(id uint8, v uint32) Body { return blob.AppendUint32(b, id, v) }

// String appends a string.
func (b Body) String(id uint8, s string) Body { return blob.AppendString(b, id, s) }

// Bool appends a byte, 0 or 1.
func (b Body) Bool(id uint8, v bool) Body { return blob.AppendBool(b, id, v) }

// Bytes appends a payload as it is.
func (b Body) Bytes(id uint8, payload []byte) Body { return blob.Append(b, id, payload) }
