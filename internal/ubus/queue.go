// SPDX-License-Identifier: Apache-2.0

package ubus

import "sync"

// maxQueueBytes is how many bytes of messages wait for one handler.
const maxQueueBytes = 8 << 20

// queue runs functions one after another, in a goroutine that is there while
// there is something to do. It keeps the order of events without letting a slow
// handler stop the reader.
type queue struct {
	c *Client

	mu      sync.Mutex
	waiting []queued
	bytes   int
	running bool
	dropped uint64
}

type queued struct {
	size int
	f    func()
}

// push adds a function that stands for a message of some size. It returns false
// if there is no room for it.
func (q *queue) push(size int, f func()) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) >= q.c.options.MaxQueue || len(q.waiting) > 0 && q.bytes+size > maxQueueBytes {
		q.dropped++
		return false
	}
	q.add(size, f)
	return true
}

// force adds a function whatever waits already.
func (q *queue) force(f func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.add(0, f)
}

func (q *queue) add(size int, f func()) {
	q.waiting = append(q.waiting, queued{size, f})
	q.bytes += size
	if !q.running {
		q.running = true
		q.c.handlers.Go(q.run)
	}
}

func (q *queue) run() {
	for {
		q.mu.Lock()
		if len(q.waiting) == 0 {
			q.running, q.waiting = false, nil
			q.mu.Unlock()
			return
		}
		next := q.waiting[0]
		q.waiting[0] = queued{}
		q.waiting = q.waiting[1:]
		q.bytes -= next.size
		q.mu.Unlock()
		next.f()
	}
}

// Dropped is how many messages found no room so far.
func (q *queue) Dropped() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped
}
