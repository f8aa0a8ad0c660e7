// SPDX-License-Identifier: Apache-2.0

package ether

import (
	"encoding/binary"
	"net"
	"net/netip"
)

const ipTCP = 6

// TCPSpec describes the frames of one direction of a TCP connection over IPv4.
type TCPSpec struct {
	Dst, Src         net.HardwareAddr
	DstIP, SrcIP     netip.Addr
	DstPort, SrcPort uint16
	Length           int // of each frame in bytes without check sequence
}

// TCP builds n frames of a stream's data, one after the other as a sender's
// window lets them go. They are what GRO puts together: with real checksums, DF,
// and nothing but ACK among the flags.
func TCP(s TCPSpec, n int) [][]byte {
	const head = 14 + 20 + 20
	frames := make([][]byte, n)
	sequence := uint32(1)
	for i := range frames {
		f := make([]byte, max(s.Length, head+1))
		copy(f, s.Dst)
		copy(f[6:], s.Src)
		binary.BigEndian.PutUint16(f[12:], TypeIPv4)
		tcp := f[14+20:]
		binary.BigEndian.PutUint16(tcp, s.SrcPort)
		binary.BigEndian.PutUint16(tcp[2:], s.DstPort)
		binary.BigEndian.PutUint32(tcp[4:], sequence)
		binary.BigEndian.PutUint32(tcp[8:], 1) // acknowledges
		tcp[12], tcp[13] = 5<<4, 0x10          // words of header, ACK
		binary.BigEndian.PutUint16(tcp[14:], 0xffff)
		putIPv4(f[14:], s.SrcIP, s.DstIP, ipTCP, len(tcp))
		binary.BigEndian.PutUint16(tcp[16:], transportSum(s.SrcIP, s.DstIP, ipTCP, tcp))
		sequence += uint32(len(f) - head)
		frames[i] = f
	}
	return frames
}
