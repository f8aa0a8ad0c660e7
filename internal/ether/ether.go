// SPDX-License-Identifier: Apache-2.0

// Package ether builds Ethernet frames for tests and measurements.
package ether

import (
	"encoding/binary"
	"net"
	"net/netip"
)

// Types of the frames built here.
const (
	TypeIPv4  = 0x0800
	TypeARP   = 0x0806
	TypeVLAN  = 0x8100 // 802.1Q
	TypeIPv6  = 0x86dd
	TypeSVLAN = 0x88a8 // 802.1ad
	TypeEAPOL = 0x888e
	TypeLLDP  = 0x88cc
)

// MinFrame is the length in bytes of the shortest frame that Ethernet
// carries, as everywhere here without its four bytes of check sequence: what
// is called a 64 byte frame on the wire.
const MinFrame = 60

// Group addresses of the frames built here.
var (
	Broadcast   = net.HardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	STPGroup    = net.HardwareAddr{0x01, 0x80, 0xc2, 0, 0, 0}
	EAPOLGroup  = net.HardwareAddr{0x01, 0x80, 0xc2, 0, 0, 0x03}
	LLDPGroup   = net.HardwareAddr{0x01, 0x80, 0xc2, 0, 0, 0x0e}
	ipUDP       = byte(17)
	ipICMPv6    = byte(58)
	unspecified net.HardwareAddr
)

// Frame builds a frame and pads it with zeros to MinFrame. A nil source is
// six zero bytes.
func Frame(dst, src net.HardwareAddr, etherType uint16, payload []byte) []byte {
	f := make([]byte, 14, max(14+len(payload), MinFrame))
	copy(f, dst)
	copy(f[6:], src)
	binary.BigEndian.PutUint16(f[12:], etherType)
	return Pad(append(f, payload...), MinFrame)
}

// Pad returns the frame with zeros behind it up to a length in bytes.
func Pad(frame []byte, length int) []byte {
	for len(frame) < length {
		frame = append(frame, 0)
	}
	return frame
}

// Tag returns a copy of the frame with a VLAN tag in front of what was there.
// The tpid is TypeVLAN or TypeSVLAN; the tci holds PCP, DEI and VID.
func Tag(frame []byte, tpid, tci uint16) []byte {
	out := make([]byte, 0, len(frame)+4)
	out = append(out, frame[:12]...)
	out = binary.BigEndian.AppendUint16(out, tpid)
	out = binary.BigEndian.AppendUint16(out, tci)
	return append(out, frame[12:]...)
}

// UDPSpec describes a UDP frame over IPv4 or IPv6.
type UDPSpec struct {
	Dst, Src         net.HardwareAddr
	DstIP, SrcIP     netip.Addr
	DstPort, SrcPort uint16
	// Length of the frame in bytes without check sequence; longer payloads
	// win. 0 means MinFrame.
	Length  int
	Payload []byte // at the start of the datagram's data; the rest counts up
}

// UDP builds the frame. It has a real checksum and, over IPv4, DF set: GRO
// never merges frames without both, and a test of it would test nothing.
func UDP(s UDPSpec) []byte {
	ipLen := 20
	if s.DstIP.Is6() {
		ipLen = 40
	}
	head := 14 + ipLen + 8
	length := max(s.Length, head+len(s.Payload))
	if length < MinFrame && s.Length == 0 {
		length = max(MinFrame, length)
	}
	f := make([]byte, length)
	copy(f, s.Dst)
	copy(f[6:], s.Src)
	udp := f[14+ipLen:]
	data := udp[8:]
	n := copy(data, s.Payload)
	for i := n; i < len(data); i++ {
		data[i] = byte(i)
	}
	binary.BigEndian.PutUint16(udp, s.SrcPort)
	binary.BigEndian.PutUint16(udp[2:], s.DstPort)
	binary.BigEndian.PutUint16(udp[4:], uint16(len(udp)))
	ip := f[14:]
	if s.DstIP.Is6() {
		binary.BigEndian.PutUint16(f[12:], TypeIPv6)
		putIPv6(ip, s.SrcIP, s.DstIP, ipUDP, 64, len(udp))
	} else {
		binary.BigEndian.PutUint16(f[12:], TypeIPv4)
		putIPv4(ip, s.SrcIP, s.DstIP, ipUDP, len(udp))
	}
	sum := transportSum(s.SrcIP, s.DstIP, ipUDP, udp)
	if sum == 0 {
		sum = 0xffff // 0 would mean "none"
	}
	binary.BigEndian.PutUint16(udp[6:], sum)
	return f
}

// putIPv4 writes a header without options and with DF for n bytes behind it.
func putIPv4(ip []byte, src, dst netip.Addr, proto byte, n int) {
	ip[0] = 0x45
	binary.BigEndian.PutUint16(ip[2:], uint16(20+n))
	binary.BigEndian.PutUint16(ip[6:], 0x4000) // DF
	ip[8], ip[9] = 64, proto
	copy(ip[12:], src.AsSlice())
	copy(ip[16:], dst.AsSlice())
	binary.BigEndian.PutUint16(ip[10:], fold(sum16(0, ip[:20])))
}

func putIPv6(ip []byte, src, dst netip.Addr, proto, hops byte, n int) {
	ip[0] = 0x60
	binary.BigEndian.PutUint16(ip[4:], uint16(n))
	ip[6], ip[7] = proto, hops
	copy(ip[8:], src.AsSlice())
	copy(ip[24:], dst.AsSlice())
}

// transportSum is the checksum of a UDP or ICMPv6 message whose own checksum
// field is still zero, with the pseudo header of its addresses.
func transportSum(src, dst netip.Addr, proto byte, msg []byte) uint16 {
	sum := sum16(0, src.AsSlice())
	sum = sum16(sum, dst.AsSlice())
	sum += uint32(proto) + uint32(len(msg))
	return fold(sum16(sum, msg))
}

func sum16(sum uint32, b []byte) uint32 {
	for ; len(b) >= 2; b = b[2:] {
		sum += uint32(b[0])<<8 | uint32(b[1])
	}
	if len(b) == 1 {
		sum += uint32(b[0]) << 8
	}
	return sum
}

func fold(sum uint32) uint16 {
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// ARPRequest asks who has an address.
func ARPRequest(src net.HardwareAddr, srcIP, target netip.Addr) []byte {
	return Frame(Broadcast, src, TypeARP, arp(1, src, srcIP, unspecified, target))
}

// ARPReply tells dst that src has srcIP.
func ARPReply(dst, src net.HardwareAddr, dstIP, srcIP netip.Addr) []byte {
	return Frame(dst, src, TypeARP, arp(2, src, srcIP, dst, dstIP))
}

func arp(op byte, sha net.HardwareAddr, spa netip.Addr, tha net.HardwareAddr, tpa netip.Addr) []byte {
	b := make([]byte, 28)
	copy(b, []byte{0, 1, 8, 0, 6, 4, 0, op})
	copy(b[8:], sha)
	copy(b[14:], spa.AsSlice())
	copy(b[18:], tha)
	copy(b[24:], tpa.AsSlice())
	return b
}

// NeighborSolicitation asks who has an IPv6 address, at its solicited-node
// group address.
func NeighborSolicitation(src net.HardwareAddr, srcIP, target netip.Addr) []byte {
	t := target.As16()
	group := netip.AddrFrom16([16]byte{0xff, 0x02, 11: 0x01, 12: 0xff, 13: t[13], 14: t[14], 15: t[15]})
	msg := make([]byte, 32)
	msg[0] = 135
	copy(msg[8:], t[:])
	copy(msg[24:], []byte{1, 1}) // option: source link-layer address
	copy(msg[26:], src)
	binary.BigEndian.PutUint16(msg[2:], transportSum(srcIP, group, ipICMPv6, msg))
	ip := make([]byte, 40, 72)
	putIPv6(ip, srcIP, group, ipICMPv6, 255, len(msg))
	dst := net.HardwareAddr{0x33, 0x33, 0xff, t[13], t[14], t[15]}
	return Frame(dst, src, TypeIPv6, append(ip, msg...))
}

// RouterAdvertisement tells everybody of a /64 prefix that they may take an
// address of. The source is the link-local address made of the MAC address.
func RouterAdvertisement(src net.HardwareAddr, prefix netip.Addr) []byte {
	from := LinkLocal(src)
	everybody := netip.MustParseAddr("ff02::1")
	msg := make([]byte, 16+32)
	msg[0], msg[4] = 134, 64 // type, hop limit
	o := msg[16:]
	copy(o, []byte{3, 4, 64, 0xc0}) // option: prefix, on link, autonomous
	binary.BigEndian.PutUint32(o[4:], 600)
	binary.BigEndian.PutUint32(o[8:], 300)
	copy(o[16:], prefix.AsSlice())
	binary.BigEndian.PutUint16(msg[2:], transportSum(from, everybody, ipICMPv6, msg))
	ip := make([]byte, 40, 40+len(msg))
	putIPv6(ip, from, everybody, ipICMPv6, 255, len(msg))
	return Frame(net.HardwareAddr{0x33, 0x33, 0, 0, 0, 1}, src, TypeIPv6, append(ip, msg...))
}

// LinkLocal is the link-local IPv6 address that is made of a MAC address.
func LinkLocal(mac net.HardwareAddr) netip.Addr {
	return netip.AddrFrom16([16]byte{0xfe, 0x80, 8: mac[0] ^ 2, 9: mac[1], 10: mac[2], 11: 0xff, 12: 0xfe, 13: mac[3], 14: mac[4], 15: mac[5]})
}

// BPDU is a configuration message of the spanning tree protocol from a bridge
// that believes itself to be the root, with its priority (0 is the best, the
// default of bridges is 0x8000) and the number of the port that it comes from.
func BPDU(src net.HardwareAddr, priority uint16, port byte) []byte {
	b := make([]byte, 3+35)
	copy(b, []byte{0x42, 0x42, 0x03}) // LLC
	c := b[3:]
	for _, id := range [][]byte{c[5:], c[17:]} { // root and bridge
		binary.BigEndian.PutUint16(id, priority)
		copy(id[2:8], src)
	}
	c[25], c[26] = 0x80, port
	c[29], c[31], c[33] = 20, 2, 15 // maximum age, hello time, forward delay, s
	// The type field holds the length of LLC and message.
	return Frame(STPGroup, src, uint16(len(b)), b)
}

// EAPOL is an EAPOL-Start frame.
func EAPOL(src net.HardwareAddr) []byte {
	return Frame(EAPOLGroup, src, TypeEAPOL, []byte{2, 1, 0, 0})
}

// LLDP is a frame with the mandatory TLVs.
func LLDP(src net.HardwareAddr) []byte {
	b := append([]byte{0x02, 7, 4}, src...) // chassis: MAC address
	b = append(b, 0x04, 7, 3)               // port: MAC address
	b = append(b, src...)
	b = append(b, 0x06, 2, 0, 120, 0, 0) // time to live, end
	return Frame(LLDPGroup, src, TypeLLDP, b)
}
