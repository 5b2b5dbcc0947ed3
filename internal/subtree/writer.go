package subtree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
)

const (
	batchOps   = 500
	batchBytes = 256 << 10
	opBytes    = 64 // approximate size of an op without path, data and ACL
	resolves   = 5  // attempts for a batch while others create and delete the same znodes
)

// StepKind says how a step changes a znode. The kinds are in the order of Patch.Apply. ACLs come
// first, so that restored data is never visible to more clients than wanted.
type StepKind int

// The kinds of steps.
const (
	SetACL StepKind = iota
	Create
	SetData
	Delete
	moveCounter // the sequence counter, forward
	leaveBehind // nothing is written: the sequence counter stays behind
	keep        // nothing is written: a live ephemeral znode is below a znode that is not wanted
	numStepKinds
)

type step struct {
	kind     StepKind
	path     string
	data     []byte
	options  client.CreateOptions // of SetACL and SetData only the ACL counts
	version  int32                // of the data, or for SetACL of the ACL, that the step replaces
	creation                      // of moveCounter
	aclSet   bool                 // of SetData: a writer with ACLs has set the ACL
}

// ops returns the operations of a step, except SetACL, for which there is none.
func (s *step) ops() []client.Op {
	switch s.kind {
	case Create:
		return []client.Op{client.CreateOp(s.path, s.data, s.options)}
	case SetData:
		return []client.Op{client.SetOp(s.path, s.data, s.version)}
	case Delete:
		return []client.Op{client.DeleteOp(s.path, s.version)}
	}
	return forward(s.path, s.by)
}

func (s *step) count() int { return max(1, int(2*s.by)) }

func (s *step) size() int {
	n := opBytes + len(s.path)
	switch s.kind {
	case Delete:
	case moveCounter:
		return 2 * int(s.by) * (n + 1 + len(counterChild))
	default:
		n += len(s.data)
		for _, a := range s.options.ACL {
			n += 12 + len(a.ID.Scheme) + len(a.ID.ID)
		}
	}
	return n
}

// writer makes steps at a live subtree, in transactions of bounded size.
type writer struct {
	zk *client.Client
	// repeat makes the writer find out whether a transaction was carried out whose reply was lost.
	// All steps must be deletions then, or no step may name a version.
	repeat   bool
	existing Existing  // with repeat: what becomes of a creation if the znode exists
	withACLs bool      // SetData sets the ACL as well
	wrote    func()    // nil, or called after each transaction
	counters *Counters // with repeat: moves the sequence counters
	done     [numStepKinds]int64
	kept     *int64 // counts the existing znodes that the writer leaves unchanged

	batch      []step
	ops, bytes int       // of the batch
	behind     []Counter // to be moved by counters: By is the wanted number of creations
}

// do makes a step, at once or with the next transaction.
func (w *writer) do(ctx context.Context, s step) error {
	switch s.kind {
	case leaveBehind, keep:
		return nil
	case SetACL:
		_, err := w.zk.SetACL(ctx, s.path, s.options.ACL, s.version)
		if err == nil {
			w.done[SetACL]++
		}
		return err
	case moveCounter:
		if w.repeat {
			w.behind = append(w.behind, Counter{Path: s.path, By: s.wanted})
			return nil
		}
		by := s.by
		s.by = 1
		for range by - 1 {
			if err := w.add(ctx, s); err != nil {
				return err
			}
		}
	}
	return w.add(ctx, s)
}

// add adds a step to the batch. If the step does not fit, add writes the batch first.
func (w *writer) add(ctx context.Context, s step) error {
	if len(w.behind) >= batchOps {
		if err := w.end(ctx); err != nil {
			return err
		}
	}
	if len(w.batch) > 0 && (w.ops+s.count() > batchOps || w.bytes+s.size() > batchBytes) {
		if err := w.flush(ctx); err != nil {
			return err
		}
	}
	w.batch = append(w.batch, s)
	w.ops, w.bytes = w.ops+s.count(), w.bytes+s.size()
	return nil
}

// end writes the batch and moves the counters that are behind.
func (w *writer) end(ctx context.Context) error {
	err := w.flush(ctx)
	if err == nil && len(w.behind) > 0 {
		err = w.counters.move(ctx, w.zk, w.behind)
		w.behind = w.behind[:0]
	}
	return err
}

// flush writes the batch. After an error nothing of the batch was written, except ACLs of existing
// znodes, unless the error says that this is unknown.
func (w *writer) flush(ctx context.Context) error {
	lost := false
	for tries := 0; len(w.batch) > 0; tries++ {
		if err := w.setACLs(ctx); err != nil {
			return err
		}
		before := w.zk.LastZxid()
		err := w.multi(ctx)
		switch {
		case err == nil:
			w.written()
		case !w.repeat:
			return w.explained(err, false)
		case w.batch[0].kind == Delete && (errors.Is(err, proto.ErrNoNode) || errors.Is(err, proto.ErrConnectionLoss)):
			if err := w.deleteEach(ctx); err != nil {
				return err
			}
			w.written()
		case errors.Is(err, proto.ErrConnectionLoss) && tries < attempts:
			done, checkErr := w.carriedOut(ctx, before)
			if checkErr != nil {
				return errors.Join(w.explained(err, true), checkErr)
			}
			if done {
				w.written()
			}
			lost = true
		case (errors.Is(err, proto.ErrNodeExists) || errors.Is(err, proto.ErrNoNode) && w.existing == Replace) &&
			w.existing != Refuse && tries < resolves:
			if err := w.resolve(ctx); err != nil {
				return err
			}
		default:
			return w.explained(err, lost)
		}
	}
	return nil
}

// explained adds the likely cause to the error of a batch. A server closes the connection on
// which a request is longer than jute.maxbuffer.
func (w *writer) explained(err error, lost bool) error {
	switch {
	case errors.Is(err, proto.ErrConnectionLoss):
		largest := slices.MaxFunc(w.batch, func(a, b step) int { return cmp.Compare(a.size(), b.size()) })
		return fmt.Errorf("%w; the largest write of %d was %s with %d bytes: if the server is reachable, raise its jute.maxbuffer",
			err, len(w.batch), largest.path, len(largest.data))
	case lost:
		return fmt.Errorf("after a connection was lost: %w", err)
	}
	return err
}

// multi makes the steps of the batch in a transaction. A single step needs none, which would make
// the request longer than the one that wrote the znode to its source.
func (w *writer) multi(ctx context.Context) (err error) {
	if s := &w.batch[0]; len(w.batch) == 1 {
		switch s.kind {
		case Create:
			_, _, err = w.zk.Create(ctx, s.path, s.data, s.options)
			return err
		case SetData:
			_, err = w.zk.Set(ctx, s.path, s.data, s.version)
			return err
		}
	}
	var ops []client.Op
	for i := range w.batch {
		ops = append(ops, w.batch[i].ops()...)
	}
	_, err = w.zk.Multi(ctx, ops...)
	return err
}

// setACLs sets the ACLs of the existing znodes of the batch, which a multi cannot do.
func (w *writer) setACLs(ctx context.Context) error {
	for i := range w.batch {
		s := &w.batch[i]
		if !w.withACLs || s.kind != SetData || s.aclSet {
			continue
		}
		acl := s.options.ACL
		if acl == nil {
			acl = proto.OpenACL()
		}
		err := retry(func() error { _, err := w.zk.SetACL(ctx, s.path, acl, client.AnyVersion); return err })
		if err != nil && !errors.Is(err, proto.ErrNoNode) { // if the znode is gone, the multi fails
			return err
		}
		s.aclSet = err == nil
	}
	return nil
}

func (w *writer) written() {
	for i := range w.batch {
		w.done[w.batch[i].kind]++
	}
	w.batch, w.ops, w.bytes = w.batch[:0], 0, 0
	if w.wrote != nil {
		w.wrote()
	}
}

// deleteEach deletes the batch in single requests, because a part of it may be deleted already.
func (w *writer) deleteEach(ctx context.Context) error {
	for i := range w.batch {
		s := &w.batch[i]
		err := retry(func() error { return w.zk.Delete(ctx, s.path, s.version) })
		if err != nil && !errors.Is(err, proto.ErrNoNode) {
			return err
		}
	}
	return nil
}

// carriedOut reports whether a multi whose reply was lost was applied: all znodes that it creates
// have the same zxid, which is newer than before. A batch that creates nothing can be repeated.
func (w *writer) carriedOut(ctx context.Context, before proto.Zxid) (bool, error) {
	if _, err := (Side{ZK: w.zk, Path: "/"}).latest(ctx); err != nil {
		return false, err
	}
	stats, err := w.stats(ctx)
	if err != nil {
		return false, err
	}
	var zxid proto.Zxid
	for i, stat := range stats {
		if w.batch[i].kind == SetData {
			continue
		}
		if stat == nil || stat.Czxid <= before || zxid != 0 && stat.Czxid != zxid {
			return false, nil
		}
		zxid = stat.Czxid
	}
	return zxid != 0, nil
}

// resolve finds out which znodes of the batch exist and treats them as existing says.
func (w *writer) resolve(ctx context.Context) error {
	stats, err := w.stats(ctx)
	if err != nil {
		return err
	}
	var rest []step
	for i := range w.batch {
		s := w.batch[i]
		there := stats[i] != nil
		if there && w.existing == Keep {
			*w.kept++
			w.ops, w.bytes = w.ops-1, w.bytes-s.size()
			continue
		}
		if s.kind, s.aclSet = Create, false; there {
			s.kind = SetData
		}
		rest = append(rest, s)
	}
	w.batch = rest
	return nil
}

// stats returns the Stat of each znode of the batch, nil for a znode that does not exist.
func (w *writer) stats(ctx context.Context) ([]*proto.Stat, error) {
	stats := make([]*proto.Stat, len(w.batch))
	return stats, Each(len(stats), func(i int) error {
		return retry(func() error {
			stat, there, err := w.zk.Exists(ctx, w.batch[i].path, false)
			if there {
				stats[i] = &stat
			}
			return err
		})
	})
}
