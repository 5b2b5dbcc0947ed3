package kill

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/gozkd/gozkd/proto"
)

// A worker is a client with one session that outlives the server's processes. It keeps many
// requests in flight. One goroutine uses it at a time: that of run, or the test's.
type worker struct {
	addr   string
	name   string
	ledger *ledger
	rng    *rand.Rand

	session proto.SessionID
	passwd  []byte
	seen    proto.Zxid // the highest that a reply has shown
	conns   int
	made    int // ops so far

	ops   []*op // since the last check, in the order of sending
	held  []*op // creates that were carried out and that nothing was sent to delete
	reg   chain
	moves chain
}

// A chain is a sequence of writes, each with the version that the previous write makes.
type chain struct {
	at   link // the last one that is known to be carried out
	sent link // the last one sent
}

type link struct {
	version, balance int32
	id               string
}

const (
	workerTimeout = 50 * time.Second
	sharedPaths   = 3
	// From maxHeld znodes on, a worker deletes more than it creates. That keeps the list of
	// children within one frame, and the checks short, however many rounds there are.
	maxHeld = 1000
)

func (w *worker) own() string { return "/own/" + w.name }

// setUp makes the worker's session and znodes.
func (w *worker) setUp(ctx context.Context) error {
	c, err := open(ctx, w.addr, newSession(workerTimeout))
	if err != nil {
		return err
	}
	w.session, w.passwd = c.session, c.passwd
	const nobody = "nobody"
	for path, data := range map[string]string{
		w.own(): nobody, w.own() + "-a": account(nobody, total), w.own() + "-b": account(nobody, 0),
	} {
		if err := c.create(path, data); err != nil {
			return errors.Join(err, c.Close())
		}
	}
	w.reg.at.id, w.moves.at = nobody, link{id: nobody, balance: total}
	w.reg.sent, w.moves.sent = w.reg.at, w.moves.at
	return c.Close()
}

// attach connects and finds out how far the chains have come. A session that is gone, or a zxid
// lower than an earlier one, is recorded as a fault. Other errors mean that the server is down.
func (w *worker) attach(ctx context.Context) (*client, error) {
	c, err := open(ctx, w.addr, &proto.ConnectRequest{
		LastZxidSeen: w.seen, TimeoutMs: int32(workerTimeout.Milliseconds()), SessionID: w.session, Passwd: w.passwd,
	})
	if errors.Is(err, errRefused) {
		w.ledger.faultf("ephemeral: the session of %s is gone: %v", w.name, err)
	}
	if err != nil {
		return nil, err
	}
	if err := w.resolveChains(c); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	w.conns++
	w.ledger.count("sessions taken up again", 1)
	return c, nil
}

// run connects and works until the connection is lost, or with a limit until that many ops have
// answers.
func (w *worker) run(ctx context.Context, limit int) {
	c, err := w.attach(ctx)
	if err != nil {
		return
	}
	first := c.xid + 1
	answered, base := len(w.ops), len(w.ops)
	for err == nil && (limit == 0 || len(w.ops)-base < limit) {
		var burst []byte
		for range 1 + w.rng.IntN(64) {
			o := w.draw()
			o.conn, o.floor = w.conns, w.ledger.floor()
			w.ops = append(w.ops, o)
			code, body := o.encode()
			burst = c.append(burst, code, body)
		}
		if err = c.Write(burst, patience); err != nil {
			break
		}
		for keep := w.rng.IntN(64); err == nil && len(w.ops)-answered > keep; answered++ {
			err = w.answer(c, w.ops[answered], first+int32(answered-base))
		}
		if err != nil {
			answered--
		}
	}
	// Answers that came before the connection broke can still be read.
	for ; answered < len(w.ops) && w.answer(c, w.ops[answered], first+int32(answered-base)) == nil; answered++ {
	}
	w.ledger.count("without an answer", len(w.ops)-answered)
	for _, o := range w.ops[answered:] {
		if o.kind == setShared {
			w.ledger.setShared(o.path, o.id, 0, false)
		}
	}
	_ = c.Close() // it is broken, or all that was asked is answered
}

// draw makes a random request.
func (w *worker) draw() *op {
	w.made++
	o := &op{id: fmt.Sprintf("%s.%d", w.name, w.made)}
	switch n := w.rng.IntN(100); {
	case n < 20:
		o.kind, o.path, o.version = setOwn, w.own(), w.reg.sent.version+1
		w.reg.sent = link{version: o.version, id: o.id}
	case n < 32:
		o.kind, o.path, o.version, o.balance = move, w.own()+"-", w.moves.sent.version+1, w.rng.IntN(total+1)
		w.moves.sent = link{version: o.version, id: o.id, balance: int32(o.balance)}
	case n < 42:
		o.kind, o.path = setShared, sharedPath(w.rng.IntN(sharedPaths))
	case n < 45:
		o.kind, o.path = failing, "/never/"+o.id
	case n < 50:
		o.kind, o.path, o.version, o.want = read, w.own(), w.reg.sent.version, w.reg.sent.id
	case n < 54:
		o.kind, o.path = hold, "/hold/"+o.id
	case n < 85 && len(w.held) > maxHeld:
		i := w.rng.IntN(len(w.held))
		o.kind, o.target, o.path = drop, w.held[i], w.held[i].path
		w.held[i] = w.held[len(w.held)-1]
		w.held = w.held[:len(w.held)-1]
	default:
		o.kind = seq
	}
	return o
}

func sharedPath(i int) string { return fmt.Sprintf("/shared-%d", i) }

// answer reads the next reply, which must be that of o. An error means that there are no more
// replies.
func (w *worker) answer(c *client, o *op, xid int32) error {
	r, err := c.next()
	if err != nil {
		return err
	}
	if r.Xid != xid {
		w.ledger.faultf("order: %s got the reply to request %d, want %d", w.name, r.Xid, xid)
		return errors.New("replies out of order")
	}
	w.see(r.Zxid)
	version, fault := o.settle(&r)
	if fault != "" {
		w.ledger.faultf("%s (%s of %s, %s)", fault, kindNames[o.kind], o.path, o.id)
		return nil
	}
	switch o.kind {
	case read, failing:
		w.ledger.count("reads and refusals", 1)
		return nil
	case setOwn:
		w.reg.at = link{version: o.version, id: o.id}
	case move:
		w.moves.at = link{version: o.version, id: o.id, balance: int32(o.balance)}
	case seq, hold:
		w.held = append(w.held, o)
	case setShared:
		w.ledger.setShared(o.path, o.id, version, true)
	}
	w.ledger.ack(o.id, o.zxid, o.floor)
	return nil
}

var kindNames = [...]string{"set", "multi", "sequential create", "ephemeral create", "delete", "shared set", "failing multi", "read"}

// see records a zxid that the server has shown to this session.
func (w *worker) see(zxid proto.Zxid) {
	if zxid < w.seen {
		w.ledger.faultf("order: %s saw the zxid %v after %v", w.name, zxid, w.seen)
	}
	w.seen = max(w.seen, zxid)
}

// resolveChains reads the chains and resolves their writes without an answer. No request of the
// worker may be in flight.
func (w *worker) resolveChains(c *client) error {
	nodes, err := c.getAll([]string{w.own(), w.own() + "-a", w.own() + "-b"})
	if err != nil {
		return err
	}
	reg, a, b := nodes[0], nodes[1], nodes[2]
	if !reg.exists || !a.exists || !b.exists {
		w.ledger.faultf("lost: znodes of %s are gone", w.name)
		return nil
	}
	w.resolve(&w.reg, setOwn, reg.stat.Version, reg.data)
	id, _, _ := strings.Cut(a.data, " ")
	w.resolve(&w.moves, move, a.stat.Version, id)
	balance := int(w.moves.at.balance)
	if a.data != account(id, balance) || b.data != account(id, total-balance) || a.stat.Version != b.stat.Version {
		w.ledger.faultf("lost: half a multi of %s: %q version %d and %q version %d; a had %d", w.name, a.data, a.stat.Version, b.data, b.stat.Version, balance)
	}
	return nil
}

// resolve resolves the unanswered writes of a chain, which was found at a version and with the
// value id.
func (w *worker) resolve(ch *chain, k kind, version int32, id string) {
	switch {
	case version < ch.at.version:
		w.ledger.faultf("lost: version %d of %s, which %s made: found version %d of %q", ch.at.version, w.name, ch.at.id, version, id)
	case version > ch.sent.version:
		w.ledger.faultf("invented: version %d of %s by %q: only %d were sent", version, w.name, id, ch.sent.version)
	}
	for _, o := range w.ops {
		if o.kind != k || o.fate != unanswered {
			continue
		}
		if o.fate = absent; o.version <= version {
			o.fate = applied
			ch.at = link{version: o.version, id: o.id, balance: int32(o.balance)}
		}
	}
	if version == ch.at.version && id != ch.at.id {
		w.ledger.faultf("lost: version %d of %s is of %q, not of %s", version, w.name, id, ch.at.id)
	}
	ch.at.version = version // report a fault once
	ch.sent = ch.at
}
