package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/rawclient"
	"github.com/gozkd/gozkd/proto"
)

// timeout bounds an exchange with a server, and sessionMs is the timeout of sessions: long, so that
// none expires while the trees are read.
const (
	timeout   = 30 * time.Second
	sessionMs = 600_000
)

// sessionID is a session that was open when the server was killed.
type sessionID struct {
	id     proto.SessionID
	passwd []byte
}

// load is a number of clients that write until their server is gone.
type load struct {
	ended   chan struct{} // closed when all clients have ended
	enough  chan struct{} // closed when missing gets to 0
	missing atomic.Int64  // how many replies are missing to enough
	mu      sync.Mutex
	open    []sessionID
}

// startLoad starts clients whose requests meet on a few paths. enough is a number of replies.
func startLoad(ctx context.Context, addr, release string, rng *rand.Rand, clients, enough int) *load {
	l := &load{ended: make(chan struct{}), enough: make(chan struct{})}
	l.missing.Store(int64(enough))
	var running sync.WaitGroup
	for n := range clients {
		w := &worker{l: l, rng: rand.New(rand.NewPCG(rng.Uint64(), uint64(n))), modern: since35(release)}
		// Ends when the server is killed; awaited by wait.
		running.Go(func() {
			for w.session(ctx, addr) {
			}
		})
	}
	// Ends with the clients; awaited by wait.
	go func() {
		running.Wait()
		close(l.ended)
	}()
	return l
}

// awaitEnough waits until the clients have received enough replies.
func (l *load) awaitEnough(ctx context.Context) error {
	select {
	case <-l.enough:
		return nil
	case <-l.ended:
		return errors.New("the server is gone")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// wait returns the sessions that were open in the end.
func (l *load) wait() []sessionID {
	<-l.ended
	return l.open
}

// worker is a client.
type worker struct {
	l      *load
	rng    *rand.Rand
	modern bool // the server knows containers, times to live and create2
}

// session writes in a session of its own, and returns false when the server is gone.
func (w *worker) session(ctx context.Context, addr string) bool {
	c, err := rawclient.Dial(ctx, addr)
	if err != nil {
		return false
	}
	defer func() { _ = c.Close() }() // the server is gone, or the session closed
	resp, err := c.Handshake(rawclient.NewSession(sessionMs), timeout)
	if err != nil {
		return false
	}
	me := sessionID{resp.SessionID, slices.Clone(resp.Passwd)}
	w.l.mu.Lock()
	w.l.open = append(w.l.open, me)
	w.l.mu.Unlock()
	auth := proto.AuthRequest{Scheme: "digest", Auth: []byte("user:secret")}
	if w.exchange(c, []proto.OpCode{proto.OpAuth}, [][]byte{auth.Append(nil)}) != nil {
		return false
	}
	for range 20 + w.rng.IntN(200) {
		var ops []proto.OpCode
		var bodies [][]byte
		for range 1 + w.rng.IntN(8) {
			op, body := w.request()
			ops, bodies = append(ops, op), append(bodies, body)
		}
		if w.exchange(c, ops, bodies) != nil {
			return false
		}
	}
	if w.rng.IntN(3) == 0 {
		return true // the session stays, without a connection
	}
	w.l.mu.Lock()
	w.l.open = slices.DeleteFunc(w.l.open, func(s sessionID) bool { return s.id == me.id })
	w.l.mu.Unlock()
	return w.exchange(c, []proto.OpCode{proto.OpCloseSession}, [][]byte{nil}) == nil
}

// exchange sends requests at once and reads their answers, whatever they say.
func (w *worker) exchange(c *rawclient.Conn, ops []proto.OpCode, bodies [][]byte) error {
	var b []byte
	for i := range ops {
		b = rawclient.AppendRequest(b, int32(i+1), ops[i], bodies[i])
	}
	if err := c.Write(b, timeout); err != nil {
		return err
	}
	for range ops {
		if _, err := c.ReadFrame(timeout); err != nil {
			return err
		}
		if w.l.missing.Add(-1) == 0 {
			close(w.l.enough)
		}
	}
	return nil
}

// path returns a path out of few, so that requests meet.
func (w *worker) path() string {
	p := "/" + string(rune('a'+w.rng.IntN(4)))
	for range w.rng.IntN(3) {
		p += "/" + strings.Repeat("é", w.rng.IntN(2)) + fmt.Sprint(w.rng.IntN(6))
	}
	return p
}

func (w *worker) data() []byte {
	switch w.rng.IntN(12) {
	case 0:
		return nil
	case 1:
		return []byte{}
	case 2:
		return make([]byte, 4000+w.rng.IntN(20_000))
	}
	b := make([]byte, w.rng.IntN(100))
	for i := range b {
		b[i] = byte(w.rng.Uint32())
	}
	return b
}

func (w *worker) acl() []proto.ACL {
	open := proto.OpenACL()[0]
	switch w.rng.IntN(8) {
	case 0:
		return append(proto.ReadACL(), proto.ACL{Perms: 30, ID: proto.ID{Scheme: "auth"}})
	case 1:
		return []proto.ACL{open, {Perms: proto.Perms(1 + w.rng.IntN(31)), ID: proto.ID{Scheme: "digest", ID: fmt.Sprintf("u%d:hash", w.rng.IntN(40))}}}
	case 2:
		return []proto.ACL{open, {Perms: 3, ID: proto.ID{Scheme: "ip", ID: fmt.Sprintf("10.0.0.%d/24", w.rng.IntN(9))}}}
	case 3:
		return []proto.ACL{open, {Perms: 31, ID: proto.ID{Scheme: "sasl", ID: fmt.Sprintf("bob%d@EXAMPLE.COM", w.rng.IntN(5))}}}
	}
	return []proto.ACL{open}
}

// version returns -1 mostly, and otherwise a guess.
func (w *worker) version() int32 {
	if w.rng.IntN(5) > 0 {
		return -1
	}
	return int32(w.rng.IntN(3))
}

func (w *worker) create() proto.MultiOp {
	op := proto.MultiOp{Op: proto.OpCreate, Path: w.path(), Data: w.data(), ACL: w.acl()}
	op.Mode = proto.CreateMode(w.rng.IntN(4))
	if op.Mode.Sequential() {
		op.Path += "-"
	}
	if w.modern {
		switch w.rng.IntN(8) {
		case 0:
			op.Op, op.Mode = proto.OpCreateContainer, proto.ModeContainer
		case 1:
			op.Op, op.Mode, op.TTL = proto.OpCreateTTL, proto.ModePersistentTTL, 1+w.rng.Int64N(1e9)+3_600_000
		case 2, 3:
			op.Op = proto.OpCreate2
		}
	}
	return op
}

// request returns a random write.
func (w *worker) request() (proto.OpCode, []byte) {
	switch w.rng.IntN(20) {
	case 0, 1, 2, 3:
		return proto.OpSetData, (&proto.SetDataRequest{Path: w.path(), Data: w.data(), Version: w.version()}).Append(nil)
	case 4, 5:
		return proto.OpSetACL, (&proto.SetACLRequest{Path: w.path(), ACL: w.acl(), Version: w.version()}).Append(nil)
	case 6, 7, 8, 9, 10:
		return proto.OpDelete, (&proto.PathVersionRequest{Path: w.path(), Version: w.version()}).Append(nil)
	case 11, 12, 13:
		return w.multi()
	case 14:
		return w.quota()
	}
	op := w.create()
	return op.Op, (&proto.CreateRequest{Path: op.Path, Data: op.Data, ACL: op.ACL, Mode: op.Mode, TTL: op.TTL}).Append(nil, op.Op)
}

func (w *worker) multi() (proto.OpCode, []byte) {
	var m proto.MultiRequest
	for range 1 + w.rng.IntN(5) {
		op := proto.MultiOp{Path: w.path(), Version: w.version()}
		switch w.rng.IntN(5) {
		case 0:
			op.Op = proto.OpCheck
		case 1:
			op.Op, op.Data = proto.OpSetData, w.data()
		case 2:
			op.Op = proto.OpDelete
		default:
			op = w.create()
			if op.Op == proto.OpCreate2 || op.Op == proto.OpCreateTTL {
				op.Op, op.Mode, op.TTL = proto.OpCreate, op.Mode&3, 0
			}
		}
		m.Ops = append(m.Ops, op)
	}
	return proto.OpMulti, m.Append(nil)
}

// quota creates a part of a quota as ZooKeeper's shell does, which needs several requests.
func (w *worker) quota() (proto.OpCode, []byte) {
	path := "/zookeeper/quota/" + string(rune('a'+w.rng.IntN(4)))
	r := proto.CreateRequest{Path: path, ACL: proto.OpenACL()}
	switch w.rng.IntN(3) {
	case 0:
		r.Path, r.Data = path+"/zookeeper_limits", []byte("count=100000,bytes=-1")
	case 1:
		r.Path, r.Data = path+"/zookeeper_stats", []byte("count=0,bytes=0")
	}
	return proto.OpCreate, r.Append(nil, proto.OpCreate)
}
