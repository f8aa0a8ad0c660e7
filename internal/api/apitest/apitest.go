// SPDX-License-Identifier: Apache-2.0

// Package apitest has a service for the tests of the ways in.
package apitest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/xdpl2/xdpl2/internal/api"
)

// Big is a count that no signed 32-bit integer and no float64 holds.
const Big = 1<<53 + 1

// Service answers with made-up data and keeps what it was asked.
type Service struct {
	mu      sync.Mutex
	query   api.StationQuery
	err     error
	state   api.Status
	readers []chan api.Event
}

var _ api.Service = (*Service)(nil)

// New returns a service with one port, eth1, and 2,500 stations.
func New() *Service {
	return &Service{state: api.Status{
		Version: "1.2.3", Enabled: true, Mode: "mac", Bridge: "br-lan", Stations: 2500, Accelerated: 0.5,
		Ports:    []api.PortStatus{{Device: "eth1", State: api.Accelerating, Engine: "tc", Engines: map[string]string{"tc": "in use"}}},
		Verdicts: []api.VerdictCount{}, Filters: []api.Filter{}, ConfigErrors: []api.Problem{}, ConfigWarnings: []api.Problem{},
	}}
}

// Fail has all calls answered with an error; nil ends that.
func (s *Service) Fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// Change changes the status.
func (s *Service) Change(f func(*api.Status)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Ports = append([]api.PortStatus{}, s.state.Ports...)
	f(&s.state)
}

// Tell tells an event to all who asked for events.
func (s *Service) Tell(e api.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.readers {
		r <- e
	}
}

// WaitReader waits until somebody reads events: what is told before is told to
// nobody.
func (s *Service) WaitReader() {
	for {
		s.mu.Lock()
		n := len(s.readers)
		s.mu.Unlock()
		if n > 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// WaitRead waits until every event that was told has been taken.
func (s *Service) WaitRead() {
	for {
		waiting := 0
		s.mu.Lock()
		for _, r := range s.readers {
			waiting += len(r)
		}
		s.mu.Unlock()
		if waiting == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// Query is what stations were asked for last.
func (s *Service) Query() api.StationQuery {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.query
}

func (s *Service) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Status implements api.Service.
func (s *Service) Status(context.Context) (*api.Status, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.state
	return &state, s.err
}

// Ports implements api.Service.
func (s *Service) Ports(context.Context) ([]api.Port, error) {
	p := api.Port{PortStatus: api.PortStatus{Device: "eth1", Engines: map[string]string{"tc": "in use"}}, Ifindex: 3, MTU: 1500}
	p.Redirected = api.Count{Packets: Big, Bytes: Big * 64}
	return []api.Port{p}, s.failure()
}

// Stations implements api.Service.
func (s *Service) Stations(_ context.Context, q api.StationQuery) (*api.StationList, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.query = q
	list := &api.StationList{Total: 2500, Stations: []api.Station{}}
	for i := q.Offset; i < list.Total && (q.Limit == 0 || i < q.Offset+q.Limit); i++ {
		list.Stations = append(list.Stations, api.Station{MAC: fmt.Sprintf("02:00:00:00:%02x:%02x", i/256, i%256), Port: "eth1", Source: "bridge", Seen: 1.5})
	}
	return list, s.err
}

// Counters implements api.Service.
func (s *Service) Counters(_ context.Context, port string) ([]api.PortCounters, error) {
	if port != "" && port != "eth1" {
		return nil, &api.UnknownPortError{Port: port}
	}
	c := api.PortCounters{Device: "eth1", Since: time.Unix(1700000000, 0).UTC(), Verdicts: []api.VerdictCount{
		{Verdict: "redirected", Words: "sent out by the fast path", Count: api.Count{Packets: Big, Bytes: Big * 64}},
		{Verdict: "pass_group", Words: "group", Count: api.Count{Packets: 7, Bytes: 700}},
	}}
	return []api.PortCounters{c}, s.failure()
}

// Explain implements api.Service.
func (s *Service) Explain(_ context.Context, q api.ExplainQuery) (*api.Explanation, error) {
	return &api.Explanation{Verdict: "redirected", Text: "from " + q.Source + " to " + q.Destination, Egress: "eth2", Engine: "tc"}, s.failure()
}

// Reload implements api.Service.
func (s *Service) Reload(context.Context) (*api.ReloadResult, error) {
	return &api.ReloadResult{Changed: true, Warnings: []api.Problem{}}, s.failure()
}

// Calibrate implements api.Service.
func (s *Service) Calibrate(_ context.Context, seconds int) (*api.Calibration, error) {
	c := &api.Calibration{Time: time.Unix(1700000000, 0).UTC(), Kernel: "6.12.1", Machine: fmt.Sprintf("measured for %d s", seconds),
		Rows: []api.CalibrationRow{
			{Work: "tight", Size: 64, Engine: "bridge", Nanos: 1000.5, Rate: 999500, Ratio: 1, Low: 0.98, High: 1.02},
			{Work: "tcp", Engine: "tc", Rate: 8e9, Ratio: 0.99, Low: 0.97, High: 1.01},
		}, Missing: []string{"frames with room in front (roomy)"}}
	return c, s.failure()
}

// Events implements api.Service.
func (s *Service) Events(ctx context.Context) (<-chan api.Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := make(chan api.Event, 1000)
	s.readers = append(s.readers, r)
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for i := range s.readers {
			if s.readers[i] == r {
				s.readers = append(s.readers[:i], s.readers[i+1:]...)
				close(r)
				return
			}
		}
	})
	return r, nil
}
