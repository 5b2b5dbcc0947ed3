package jepsenlite

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/gozkd/gozkd/internal/backoff"
	"github.com/gozkd/gozkd/proto"
)

// loadPipeline sends many requests without waiting: a create and then numbered sets of a znode per
// connection. The n-th set must create version n exactly once and in order, across leader changes.
// When the connection breaks, some of the last requests have no reply; those that took effect are
// the first of them.
const loadPipeline = "pipeline"

func runPipeline(ctx context.Context, w *worker) {
	w.pipeline(ctx, pipelineWindow, func() { backoff.Sleep(ctx, w.Pace) }) // a pause cut short is fine
}

const pipelineWindow = 16

// pipeline keeps up to window requests in flight and calls rest between two bursts. When a
// connection breaks, the next attempts begin at the worker's first server.
func (w *worker) pipeline(ctx context.Context, window int, rest func()) {
	w.rawSessions(ctx, func(c *rawConn) (proto.Zxid, int) { return w.pipelineOn(ctx, c, window, rest), w.home })
}

// pipelineOn works on a connection until it breaks, or until ctx ends and every request is
// answered. It returns the last zxid that it saw.
func (w *worker) pipelineOn(ctx context.Context, c *rawConn, window int, rest func()) proto.Zxid {
	var (
		seen   proto.Zxid
		room   = make(chan struct{}, window) // a token per request in flight
		broken = make(chan struct{})         // closed when receiving has ended and seen is final
	)
	// Ends when the connection breaks or closes; awaited below.
	go func() {
		defer close(broken)
		for {
			h, _, err := c.receive()
			if err != nil {
				return
			}
			if h.Xid == pingXid {
				continue
			}
			seen = max(seen, h.Zxid)
			<-room
		}
	}()
	w.pipelineSend(ctx, c, window, room, broken, rest)
	_ = c.Close() // it may be broken already
	<-broken
	return seen
}

// pipelineSend sends until the connection breaks, or ctx ends and nothing is in flight.
func (w *worker) pipelineSend(ctx context.Context, c *rawConn, window int, room chan struct{}, broken <-chan struct{}, rest func()) {
	path := fmt.Sprintf("%s/%s.%d", w.dir, w.name, c.number)
	made := 0
	request := func(b []byte) []byte {
		made++
		if made == 1 {
			create := proto.CreateRequest{Path: path, ACL: proto.OpenACL()}
			return c.request(b, proto.OpCreate, create.Append(nil, proto.OpCreate))
		}
		set := proto.SetDataRequest{Path: path, Data: []byte(strconv.Itoa(made - 1)), Version: -1}
		return c.request(b, proto.OpSetData, set.Append(nil))
	}
	// With a full window the session must not seem dead.
	ping := time.NewTicker(w.Timeout / 4)
	defer ping.Stop()
	take := func() bool {
		for {
			if isClosed(broken) { // also if there is room
				return false
			}
			select {
			case room <- struct{}{}:
				return true
			case <-broken:
				return false
			case <-ping.C:
				if c.ping() != nil {
					return false
				}
			}
		}
	}
	for ctx.Err() == nil {
		if !take() {
			return
		}
		batch := request(nil)
		for more := w.rng.IntN(window); more > 0 && trySend(room); more-- {
			batch = request(batch)
		}
		if c.send(batch) != nil {
			return
		}
		if !w.rested(ctx, func() bool { return !isClosed(broken) && c.ping() == nil }) && ctx.Err() == nil {
			return
		}
		rest()
	}
	for range window {
		if !take() {
			return
		}
	}
}

func trySend(c chan<- struct{}) bool {
	select {
	case c <- struct{}{}:
		return true
	default:
		return false
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
