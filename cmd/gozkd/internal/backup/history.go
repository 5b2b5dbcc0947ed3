package backup

import (
	"context"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive/store"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/replica"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/history"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// maxHistoryBase bounds the checkpoint that a server reads from its own archive, and how much the
// state grows by the log after it: its tree is in memory beside the one that the server serves.
const maxHistoryBase = 256 << 20

// History reads the archive of a server that runs, as history.Archive. One request reads at a time:
// each needs the memory of the state that it begins with.
type History struct {
	store    store.Store
	ensemble func() uint64
	maxBase  int64
	reading  chan struct{} // has an element while somebody reads; guards kept
	// kept is the state of the last request: a person who browses a moment sends many.
	kept *keptState
}

// keptState is the state at a moment, which no write will change.
type keptState struct {
	moment history.Moment
	state  *source
}

// keepTime is for how long a state is kept.
const keepTime = 30 * time.Second

// NewHistory returns the History of an archive. ensemble returns the server's ensemble, 0: unknown.
func NewHistory(s store.Store, ensemble func() uint64) *History {
	return &History{store: s, ensemble: ensemble, maxBase: maxHistoryBase, reading: make(chan struct{}, 1)}
}

// take begins a turn, which done ends. A patient caller waits for it; others get it if it is free.
func (h *History) take(ctx context.Context, patient bool) error {
	select {
	case h.reading <- struct{}{}:
		return nil
	default:
	}
	if patient {
		select {
		case h.reading <- struct{}{}:
			return nil
		case <-ctx.Done():
		}
	}
	return history.ErrBusy
}

func (h *History) done() { <-h.reading }

// open lists the archive. The caller must have a turn.
func (h *History) open(ctx context.Context) (*archive.Archive, error) {
	h.kept = nil // there is memory for one state
	id := h.ensemble()
	if id == 0 {
		return nil, fmt.Errorf("%w: the server does not know its ensemble yet", history.ErrNotCovered)
	}
	return archive.Open(ctx, h.store, fmt.Sprintf("%016x", id))
}

// At implements history.Archive. It waits for its turn.
func (h *History) At(ctx context.Context, q history.Query, m history.Moment) (*history.State, error) {
	if err := h.take(ctx, true); err != nil {
		return nil, err
	}
	defer h.done()
	if h.kept != nil && h.kept.moment == m {
		return stateOf(h.kept.state, &q)
	}
	a, err := h.open(ctx)
	if err != nil {
		return nil, err
	}
	s, span, err := stateAt(ctx, a, m, h.maxBase)
	if err != nil {
		return nil, err
	}
	if m.Zxid != 0 || !m.Time.IsZero() && m.Time.Before(span.End) { // otherwise more writes may be archived
		kept := &keptState{m, s}
		h.kept = kept
		time.AfterFunc(keepTime, func() {
			h.reading <- struct{}{} // readers are quick, or their contexts end
			defer h.done()
			if h.kept == kept {
				h.kept = nil
			}
		})
	}
	return stateOf(s, &q)
}

// stateOf returns the znode that is asked for.
func stateOf(s *source, q *history.Query) (*history.State, error) {
	zxid := s.tree.LastZxid()
	z, code := see(s.tree, q)
	if code != proto.OK {
		return nil, fmt.Errorf("%s at zxid %v: %w", q.Path, zxid, code)
	}
	return &history.State{Znode: *z, Children: children(s.tree, q.Path), Zxid: zxid, Time: s.held.Time}, nil
}

// see returns a znode of a tree to a caller who may read it.
func see(t *datatree.Tree, q *history.Query) (*history.Znode, proto.ErrCode) {
	data, stat, code := t.GetData(q.Path, datatree.Caller{IDs: q.IDs})
	if code != proto.OK {
		return nil, code
	}
	acl, _, code := t.GetACL(q.Path, datatree.Caller{IDs: q.IDs})
	if code != proto.OK {
		return nil, code
	}
	if q.MaxData > 0 && len(data) > q.MaxData {
		data = slices.Clone(data[:q.MaxData]) // otherwise the whole data stays in memory
	}
	return &history.Znode{Stat: stat, Data: data, ACL: slices.Clone(acl)}, proto.OK
}

func children(t *datatree.Tree, path string) []string {
	b, _, _ := t.AppendChildren(nil, path, datatree.Caller{SkipACL: true}) // the znode exists
	var d jute.Decoder
	d.Reset(b)
	return d.Strings()
}

// Changes implements history.Archive. It replays from the newest base, then from older ones until
// it has found enough, or the time is up.
func (h *History) Changes(ctx context.Context, q history.Query) (*history.Page, error) {
	if err := h.take(ctx, false); err != nil {
		return nil, err
	}
	defer h.done()
	a, err := h.open(ctx)
	if err != nil {
		return nil, err
	}
	page := &history.Page{Next: q.Before}
	if q.Before != 0 {
		page.Next = max(q.Before, 3) // no write has a lower zxid, and 0 would mean the newest ones below
	}
	for first := true; first || page.Next != 0 && len(page.Changes) < q.Limit; first = false {
		span, err := a.At(history.Moment{Zxid: max(page.Next, 2) - 2}) // a base that lacks the change before Next
		if err != nil {
			return nil, err
		}
		if first {
			page.Until = span.End
		}
		f := follower{filter: replica.Filter{Path: q.Path, Below: !q.Since.IsZero()}, query: &q, room: q.Limit - len(page.Changes)}
		f.Restored = f.begin
		if f.Until = page.Next - 1; page.Next == 0 {
			f.Until = 0
		}
		if _, err := replay(ctx, a, &span, &f.Replica, time.Time{}, h.maxBase); err != nil {
			if !first && ctx.Err() != nil {
				return page, nil
			}
			return nil, err
		}
		page.Next = f.finish(a, span)
		page.Changes, page.Hidden = append(page.Changes, f.changes...), page.Hidden+f.hidden
	}
	return page, nil
}

// follower is a replica that collects the changes of a znode or a subtree, the newest of them.
type follower struct {
	replica.Replica
	filter  replica.Filter
	query   *history.Query
	room    int
	changes []history.Change // the oldest first, until finish
	cut     bool             // there are more
	old     bool             // there are none that are older, because of query.Since
	denied  bool             // the caller may not read the znode in its present state
	hidden  int              // changes that the caller may not see

	base     proto.Zxid      // of the state that it begins with
	first    *history.Change // that state, nil if the znode was not there
	baseStat proto.Stat
	exists   bool
	stat     proto.Stat
}

// begin looks at the state of the base.
func (f *follower) begin() {
	f.base = f.Tree.LastZxid()
	if f.filter.Below {
		f.HandOut(f.appliedBelow)
		return
	}
	f.HandOut(f.applied)
	f.look()
	if f.exists {
		f.first, f.baseStat = f.change(history.Earlier), f.stat
		f.first.Zxid = f.base
	}
}

func (f *follower) look() {
	stat, code := f.Tree.Exists(f.query.Path, datatree.Caller{SkipACL: true})
	f.stat, f.exists = stat, code == proto.OK
}

// change returns a change to the present state, and notes whether the caller may see that.
func (f *follower) change(kind string) *history.Change {
	c := &history.Change{Kind: kind}
	if f.exists {
		var code proto.ErrCode
		c.Znode, code = see(f.Tree, f.query)
		f.denied = code != proto.OK
	}
	return c
}

// applied collects a change.
func (f *follower) applied(t *replica.Txn) bool {
	if f.filter.Change(t) == nil {
		return true
	}
	existed, kind := f.exists, history.ACL
	f.look()
	switch {
	case !existed && !f.exists: // a multi has created and deleted it
		return true
	case !f.exists:
		kind = history.Deleted
	case f.stat.Czxid == t.Zxid:
		kind = history.Created
	case f.stat.Mzxid == t.Zxid:
		kind = history.Changed
	}
	c := f.change(kind)
	if f.denied { // after a deletion: the znode before
		f.hidden++
		return true
	}
	c.Op = t.Op
	f.add(t, c)
	return true
}

// add collects a change of a transaction. It forgets the oldest only when there are twice as many
// as are wanted, because the others then move.
func (f *follower) add(t *replica.Txn, c *history.Change) {
	c.Zxid, c.Time, c.Session, c.IDs = t.Zxid, t.Time, t.Session, slices.Clone(t.IDs)
	f.changes = append(f.changes, *c)
	f.trim(f.room)
}

// trim forgets the oldest transactions for which there is no room, but never the newest. It does
// nothing while no more than slack changes are too many.
func (f *follower) trim(slack int) {
	excess := len(f.changes) - f.room
	if excess <= slack {
		return
	}
	oldest := min(f.changes[excess-1].Zxid+1, f.changes[len(f.changes)-1].Zxid) // that stays
	kept := slices.IndexFunc(f.changes, func(c history.Change) bool { return c.Zxid >= oldest })
	f.changes, f.cut = slices.Delete(f.changes, 0, kept), f.cut || kept > 0
}

// kinds are the kinds of changes of which a tree has events.
var kinds = map[proto.EventType]string{
	proto.EventCreated: history.Created, proto.EventDataChanged: history.Changed, proto.EventDeleted: history.Deleted,
}

// appliedBelow collects the changes of a subtree.
func (f *follower) appliedBelow(t *replica.Txn) bool {
	if t.Time.Before(f.query.Since) {
		f.old = true
		return true
	}
	for _, e := range t.Events {
		if kind := kinds[e.Type]; kind != "" && f.filter.Matches(e.Path) {
			f.addBelow(t, e.Path, kind, f.Tree.Readable(e.ACL, datatree.Caller{IDs: f.query.IDs}))
		}
	}
	if part := f.filter.Change(t); part != nil { // of a new ACL there is no event
		for _, op := range append(part.Ops, *part) {
			if op.Op == proto.OpSetACL.String() {
				f.addBelow(t, op.Path, history.ACL, true)
			}
		}
	}
	return true
}

// addBelow adds a change for callers who may read the znode before it was deleted, or otherwise
// after the change, and list its name and those of the znodes above it, up to the query's. A znode
// that was deleted with its parent is left out: the deletion of the parent is a change, too.
func (f *follower) addBelow(t *replica.Txn, znode, kind string, readable bool) {
	for p := znode; ; p = path.Dir(p) {
		may, exists := f.Tree.ReadableNow(p, datatree.Caller{IDs: f.query.IDs})
		if !exists && p != znode {
			return
		}
		if readable = readable && (may || !exists); p == f.query.Path {
			break
		}
	}
	if !readable {
		f.hidden++
		return
	}
	f.add(t, &history.Change{Path: znode, Kind: kind, Op: t.Op})
}

// finish turns the changes around, and returns the zxid below which the next page begins; 0: none.
func (f *follower) finish(a *archive.Archive, span archive.Span) (next proto.Zxid) {
	f.trim(0)
	slices.Reverse(f.changes)
	if f.cut {
		return f.changes[len(f.changes)-1].Zxid
	}
	if f.old {
		return 0
	}
	next = f.base
	if f.first != nil && f.baseStat.Aversion == 0 {
		next = min(next, f.baseStat.Mzxid) // nothing happened in between
	}
	older, err := archive.Span{}, history.ErrNotCovered
	if next > 1 {
		older, err = a.At(history.Moment{Zxid: next - 1})
	}
	if err == nil && older.Last >= span.First {
		return next + 1
	}
	if f.first != nil && f.first.Znode != nil {
		f.first.Time = span.Begin
		f.changes = append(f.changes, *f.first)
	}
	if err != nil {
		if f.filter.Below {
			f.changes = append(f.changes, history.Change{Kind: history.Earlier, Zxid: f.base, Time: span.Begin})
		}
		return 0
	}
	f.changes = append(f.changes, history.Change{Kind: history.Gap, Zxid: f.base, Time: older.End})
	return next + 1
}
