package kill

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/gozkd/gozkd/internal/testkit/rawclient"
)

// A record holds the expected state, as of the last check.
type record struct {
	live map[string]*op     // created by seq and hold, by path
	seqs map[string]string  // every path that seq has returned, and the receiver
	last map[*worker]string // the last path that seq gave to a worker
	own  map[string]*worker // by path of an ephemeral
}

func newRecord() *record {
	return &record{live: map[string]*op{}, seqs: map[string]string{}, last: map[*worker]string{}, own: map[string]*worker{}}
}

// check reads everything with c and compares it with the answers that the clients have received. It
// resolves every op without an answer: afterwards the op counts as acknowledged, or must stay
// absent. No request may be in flight. Faults go into the ledger; the error is that of a server
// that does not answer.
func (r *record) check(ctx context.Context, c *client, l *ledger, workers []*worker) error {
	seqs, err1 := c.list("/seq")
	holds, err2 := c.list("/hold")
	never, err3 := c.list("/never")
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	for p := range never {
		l.faultf("invented: %s, of a multi that failed", p)
	}
	for i := range sharedPaths {
		n, err := c.get(sharedPath(i))
		if err != nil {
			return err
		}
		l.checkShared(sharedPath(i), n)
	}
	found := seqs
	maps.Copy(found, holds)
	writers := make(map[string]string, len(found)) // id → path
	for _, p := range slices.Sorted(maps.Keys(found)) {
		id := found[p].data
		if other, twice := writers[id]; twice {
			l.faultf("invented: %s was carried out twice: %s and %s", id, other, p)
		}
		writers[id] = p
	}
	for _, w := range workers {
		// The worker's own session must work too, and must not see an older state than before.
		own, err := w.attach(ctx)
		switch {
		case errors.Is(err, rawclient.ErrClosed):
			l.faultf("lost: %s has seen the zxid %v and gets no session from this server", w.name, w.seen)
		case errors.Is(err, errRefused): // already in the ledger
		case err != nil:
			return err
		default:
			if err := own.Close(); err != nil {
				return err
			}
		}
		if err := w.resolveChains(c); err != nil {
			return err
		}
		r.settle(l, w, found, writers)
		r.prefixes(l, w)
		w.ops = w.ops[:0]
	}
	r.compare(l, found)
	return nil
}

// settle updates the record with a worker's ops since the last check.
func (r *record) settle(l *ledger, w *worker, found map[string]znode, writers map[string]string) {
	for _, o := range w.ops {
		switch o.kind {
		case seq, hold:
			if o.fate == unanswered {
				p, there := writers[o.id]
				if o.fate = absent; !there {
					continue
				}
				o.fate, o.path, o.zxid = applied, p, found[p].stat.Czxid
				w.held = append(w.held, o)
				l.count("found without an answer", 1)
			}
			if o.fate == applied {
				r.made(l, w, o)
			}
		case drop:
			if _, there := found[o.path]; o.fate == unanswered {
				if o.fate = applied; there {
					o.fate = absent
					w.held = append(w.held, o.target)
				}
			}
			if o.fate == applied {
				delete(r.live, o.path)
				delete(r.own, o.path)
			}
		}
	}
}

// made adds a create that was carried out.
func (r *record) made(l *ledger, w *worker, o *op) {
	r.live[o.path] = o
	if o.kind == hold {
		r.own[o.path] = w
		return
	}
	if other, twice := r.seqs[o.path]; twice {
		l.faultf("lost: %s was given to %s and to %s", o.path, other, o.id)
	}
	r.seqs[o.path] = o.id
	if o.path <= r.last[w] { // all have ten digits
		l.faultf("order: %s got %s after %s", o.id, o.path, r.last[w])
	}
	r.last[w] = o.path
}

// prefixes checks that the ops that were carried out are a prefix of each connection's ops.
func (r *record) prefixes(l *ledger, w *worker) {
	var missing *op
	for _, o := range w.ops {
		switch {
		case !o.visible():
		case missing != nil && missing.conn == o.conn && o.fate == applied:
			l.faultf("order: %s was carried out, but not %s, sent before it on the same connection", o.id, missing.id)
		case o.fate == absent && (missing == nil || missing.conn != o.conn):
			missing = o
		}
	}
}

// compare compares the expected state with the actual one.
func (r *record) compare(l *ledger, found map[string]znode) {
	for p, o := range r.live {
		n, there := found[p]
		if !there {
			kind := "lost"
			if o.kind == hold {
				kind = "ephemeral"
			}
			l.faultf("%s: %s of %s is gone", kind, p, o.id)
			delete(r.live, p) // report a fault once
			continue
		}
		if n.data != o.id || n.stat.Czxid != o.zxid || n.stat.Version != 0 {
			l.faultf("lost: %s is of %q, zxid %v, version %d; it was made by %s with zxid %v", p, n.data, n.stat.Czxid, n.stat.Version, o.id, o.zxid)
		}
		if w := r.own[p]; w != nil && n.stat.EphemeralOwner != w.session {
			l.faultf("ephemeral: %s has the owner %v, want %v", p, n.stat.EphemeralOwner, w.session)
		}
	}
	for p, n := range found {
		if r.live[p] == nil {
			l.faultf("invented: %s with %q is not of an op that was carried out, or was deleted", p, n.data)
		}
	}
}
