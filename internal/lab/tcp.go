// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// The protocol between TCPServer and Transfer. The client starts with a
// header: direction (1 byte), bytes that the server shall send (8 bytes, 0 for
// "until the client ends"). After that each side that sends does so in chunks:
// a length (4 bytes) and that many bytes, at last a zero length with the
// number of bytes (8 bytes) and their CRC-32C (4 bytes). The receiver checks
// both: TCP's own checksum is too weak to show what offloads did to the data.
const (
	tcpHeader = 9
	tcpChunk  = 64 << 10
)

// Direction of a Transfer's data, seen from its client.
type Direction byte

// The directions.
const (
	Up   Direction = 1         // client to server
	Down Direction = 2         // server to client
	Both           = Up | Down // at the same time
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// noise is what is sent, from a random place on for each chunk. It repeats
// only after 128 KiB, so a chunk that got lost or doubled is noticed.
var noise = sync.OnceValue(func() []byte {
	var seed [32]byte
	copy(seed[:], "xdpl2 lab")
	b := make([]byte, 2*tcpChunk)
	r := rand.NewChaCha8(seed)
	_, _ = r.Read(b) // never fails
	return b
})

// TCPServer answers Transfers.
type TCPServer struct {
	listener net.Listener
	wg       sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]struct{}
	done  bool
}

// TCPServe listens inside the namespace; the address is like
// "192.168.77.11:0". It serves until Close, or the end of the namespace.
func (ns *NS) TCPServe(ctx context.Context, address string) (*TCPServer, error) {
	l, err := ns.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("serve TCP in %s: %w", ns, err)
	}
	s := &TCPServer{listener: l, conns: make(map[net.Conn]struct{})}
	ns.Track(s)
	s.wg.Go(s.accept)
	return s, nil
}

// TCPServe serves on the host's IPv4 or IPv6 address, at a port of the
// kernel's choice.
func (h *Host) TCPServe(ctx context.Context, v6 bool) (*TCPServer, error) {
	ip := h.IP4
	if v6 {
		ip = h.IP6
	}
	return h.NS.TCPServe(ctx, net.JoinHostPort(ip.String(), "0"))
}

// Addr is where the server listens, for Transfer.
func (s *TCPServer) Addr() string { return s.listener.Addr().String() }

func (s *TCPServer) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		if s.done {
			s.mu.Unlock()
			conn.Close()
			return
		}
		s.conns[conn] = struct{}{}
		s.mu.Unlock()
		s.wg.Go(func() {
			// An error here ends the connection, which the client reports.
			_ = serveTransfer(conn)
			conn.Close()
			s.mu.Lock()
			delete(s.conns, conn)
			s.mu.Unlock()
		})
	}
}

// Close ends the server and its connections.
func (s *TCPServer) Close() error {
	s.mu.Lock()
	s.done = true
	for c := range s.conns {
		c.Close()
	}
	s.mu.Unlock()
	err := s.listener.Close()
	s.wg.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// serveTransfer is the server's side of one connection. It always sends a
// trailer, so that the client knows that its data was checked.
func serveTransfer(conn net.Conn) error {
	var head [tcpHeader]byte
	if _, err := io.ReadFull(conn, head[:]); err != nil {
		return err
	}
	dir := Direction(head[0])
	limit := int64(binary.BigEndian.Uint64(head[1:]))
	ended := make(chan struct{})
	received := make(chan error, 1)
	go func() {
		_, err := receiveStream(conn, nil)
		close(ended)
		if err != nil {
			conn.Close() // also wakes the sender below
		}
		received <- err
	}()
	var err error
	sum := uint32(0)
	sent := int64(0)
	if dir&Down != 0 {
		stop := (<-chan struct{})(ended)
		if limit > 0 {
			stop = nil
		}
		sent, sum, err = sendChunks(conn, limit, stop, nil)
	}
	if rerr := <-received; err == nil {
		err = rerr
	}
	if err == nil {
		err = sendTrailer(conn, sent, sum)
	}
	return err
}

// sendChunks sends until limit bytes are sent (0: no limit) or stop is closed.
func sendChunks(w io.Writer, limit int64, stop <-chan struct{}, progress func(int)) (sent int64, sum uint32, err error) {
	buf := make([]byte, 4+tcpChunk)
	for limit == 0 || sent < limit {
		select {
		case <-stop:
			return sent, sum, nil
		default:
		}
		n := int64(tcpChunk)
		if limit > 0 {
			n = min(n, limit-sent)
		}
		binary.BigEndian.PutUint32(buf, uint32(n))
		copy(buf[4:4+n], noise()[rand.IntN(tcpChunk):])
		if _, err := w.Write(buf[:4+n]); err != nil {
			return sent, sum, fmt.Errorf("send: %w", err)
		}
		sum = crc32.Update(sum, castagnoli, buf[4:4+n])
		sent += n
		if progress != nil {
			progress(int(n))
		}
	}
	return sent, sum, nil
}

func sendTrailer(w io.Writer, sent int64, sum uint32) error {
	var b [16]byte
	binary.BigEndian.PutUint64(b[4:], uint64(sent))
	binary.BigEndian.PutUint32(b[12:], sum)
	if _, err := w.Write(b[:]); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	return nil
}

// receiveStream takes chunks until the trailer and checks it.
func receiveStream(r io.Reader, progress func(int)) (int64, error) {
	var got int64
	var sum uint32
	r = bufio.NewReaderSize(r, 16<<10) // for the lengths
	buf := make([]byte, tcpChunk)
	var head [4]byte
	for {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return got, fmt.Errorf("receive: %w", err)
		}
		left := int(binary.BigEndian.Uint32(head[:]))
		if left == 0 {
			break
		}
		if left > tcpChunk {
			return got, fmt.Errorf("receive: after %d bytes: %w", got, ErrCorrupt)
		}
		for left > 0 {
			n, err := r.Read(buf[:left])
			sum = crc32.Update(sum, castagnoli, buf[:n])
			got += int64(n)
			left -= n
			if progress != nil && n > 0 {
				progress(n)
			}
			if err != nil {
				return got, fmt.Errorf("receive: %w", err)
			}
		}
	}
	var tail [12]byte
	if _, err := io.ReadFull(r, tail[:]); err != nil {
		return got, fmt.Errorf("receive: %w", err)
	}
	if uint64(got) != binary.BigEndian.Uint64(tail[:]) || sum != binary.BigEndian.Uint32(tail[8:]) {
		return got, fmt.Errorf("receive: %d bytes: %w", got, ErrCorrupt)
	}
	return got, nil
}

// ErrCorrupt says that what arrived is not what was sent.
var ErrCorrupt = errors.New("content differs from what was sent")

// TCPOptions say what a Transfer sends.
type TCPOptions struct {
	Direction Direction     // 0 means Up
	Bytes     int64         // in each direction; 0 means until Duration or Stop
	Duration  time.Duration // 0 means until Bytes are sent or Stop
}

// TCPResult is what a Transfer did.
type TCPResult struct {
	Up, Down int64         // bytes of content, checked
	Elapsed  time.Duration // from the first byte to the last check
}

// Goodput is the rate of content in both directions together, in bit/s.
func (r TCPResult) Goodput() float64 {
	if r.Elapsed <= 0 {
		return 0
	}
	return float64(r.Up+r.Down) * 8 / r.Elapsed.Seconds()
}
