package server

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/internal/printable"
	"github.com/gozkd/gozkd/internal/serverlist"
	"github.com/gozkd/gozkd/internal/wakeup"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/facts"
	"github.com/gozkd/gozkd/server/internal/lifecycle"
	"github.com/gozkd/gozkd/server/internal/tenant"
	"github.com/gozkd/gozkd/watch"
)

// state is the replicated state as far as this server has applied the log, and the watches on it of
// this server's clients.
//
// The goroutine of Apply changes the tree, and reads it without a lock; all others hold the lock
// for reading. Another goroutine may drop the tree, see drop; Apply is not called then until there
// is another tree. The lock keeps these promises:
//
//   - V2, V5: Apply changes the tree under the write lock, and a reply is on the output before the
//     lock is released under which it was made.
//   - V3: a read sets its watch under the lock under which it reads, and the events of a change are
//     on the outputs before the write lock is released under which the change was made.
type state struct {
	sync.RWMutex // guards tree, history and budgets
	tree         *datatree.Tree
	budgets      tenant.Budgets // in the tree
	watches      *watch.Table   // has a lock of its own
	history      watch.History  // of the tree, for setWatches; guarded as the tree
	waitList                    // goroutines that wait for the tree to change, or for a leader
	options      datatree.Options
	// largest are the heaviest subtrees as growth weighed them last; nil: the limit is not near.
	largest atomic.Pointer[weighing]
	// dropped are the figures of the state that was dropped because there is no memory for a second
	// one, while another state is read and the lock is held. nil: there is a state.
	dropped atomic.Pointer[figures]
	// drops keeps the state from being dropped between the test of dropped and the moment when a
	// reader of figures has the lock. It comes before the lock in the order of locks.
	drops sync.RWMutex
}

// weighing holds the heaviest children of the root at a moment, the heaviest first.
type weighing struct {
	largest []facts.Subtree
	at      time.Time
}

type figures struct {
	stats    facts.Stats
	digest   uint64
	limit    datatree.Limit
	members  serverlist.Set
	version  proto.Zxid // of the members
	changing bool       // the members are about to change
}

// look calls f with the lock held for reading, unless the state was dropped. Then it returns the
// figures of that state.
func (s *state) look(f func()) (dropped *figures) {
	s.drops.RLock()
	defer s.drops.RUnlock()
	if before := s.dropped.Load(); before != nil {
		return before
	}
	s.RLock()
	defer s.RUnlock()
	f()
	return nil
}

// isDropped reports whether the state was dropped. Then the lock is held, as drop left it.
func (s *state) isDropped() bool { return s.dropped.Load() != nil }

// drop drops the state. The lock is held until install has put another state in its place, or
// unlockDropped is called. Nobody reads meanwhile; the figures are those of before.
func (s *state) drop() {
	before := s.figures()
	s.drops.Lock()
	defer s.drops.Unlock()
	s.dropped.Store(&before)
	s.Lock()
	s.tree = datatree.New(s.options)
	s.history.Reset(0)
}

// unlockDropped ends a drop without another state.
func (s *state) unlockDropped() {
	s.dropped.Store(nil)
	s.Unlock()
}

// init makes the state of a server without data.
func (s *state) init(cfg *Config, serving func() bool) {
	s.watches = watch.New()
	s.history.Limit = int(cfg.WatchReplay)
	s.options = datatree.Options{TrackDirty: cfg.Dir != "", ListBytes: int(cfg.MaxBuffer), LongList: func(path string, bytes int) {
		if serving() { // otherwise the log is applied again, and serve warns later
			cfg.Logger.Warn("a list of children is longer than jute.maxbuffer: clients with this limit cannot read it",
				"path", printable.Shortened(path, maxLoggedReason), "bytes", bytes, "limit", cfg.MaxBuffer)
		}
	}}
	s.tree = datatree.New(s.options)
}

// install replaces the tree, and calls meanwhile with the write lock held.
func (s *state) install(t *datatree.Tree, meanwhile func()) {
	if !s.isDropped() {
		s.Lock()
	}
	defer s.Unlock()
	s.tree, s.budgets = t, tenant.Budgets{}
	s.history.Reset(t.LastZxid())
	t.Walk(proto.QuotaRoot, func(z Znode) bool {
		_ = s.budgets.Set(z.Path, z.Data, true, time.Now()) // it was logged when it was written
		return true
	})
	s.dropped.Store(nil)
	meanwhile()
}

// noteBudget notes that a znode has changed, if it is a budget. The write lock is held.
func (s *state) noteBudget(path string) error {
	if !strings.HasPrefix(path, proto.QuotaRoot) {
		return nil
	}
	data, _, code := s.tree.GetData(path, datatree.Caller{SkipACL: true})
	return s.budgets.Set(path, data, code == proto.OK, time.Now())
}

func (s *state) weight() (int64, datatree.Limit) {
	f := s.figures()
	return f.stats.Growth.Weight, f.limit
}

// weighSubtrees weighs the children of the root. It holds the lock for a part of the znodes at a
// time, so it may miss concurrent changes. If the state is dropped meanwhile, the result is the
// last one.
func (s *state) weighSubtrees() *weighing {
	const shown, kept = 3, 1000
	weights := make(map[string]*int64)
	for part := range datatree.WeightParts {
		weigh := func(child string, weight int64) {
			w := weights[child]
			if w == nil {
				if len(weights) == kept { // a large subtree comes again at once
					all := slices.Collect(maps.Values(weights))
					slices.SortFunc(all, func(a, b *int64) int { return cmp.Compare(*a, *b) })
					maps.DeleteFunc(weights, func(_ string, w *int64) bool { return *w <= *all[kept/2] })
				}
				w = new(int64)
				weights[strings.Clone(child)] = w
			}
			*w += weight
		}
		if s.look(func() { s.tree.WeighPart(part, weigh) }) != nil {
			return s.largest.Load()
		}
	}
	list := make([]facts.Subtree, 0, len(weights))
	for child, w := range weights {
		list = append(list, facts.Subtree{Path: "/" + child, Weight: *w})
	}
	sort.Slice(list, func(i, j int) bool {
		return cmp.Or(cmp.Compare(list[j].Weight, list[i].Weight), cmp.Compare(list[i].Path, list[j].Path)) < 0
	})
	return &weighing{slices.Clone(list[:min(len(list), shown)]), time.Now()}
}

func (s *state) lastZxid() proto.Zxid { return proto.Zxid(s.figures().stats.Zxid) }

// session returns a session, if it is known, and the present epoch.
func (s *state) session(id proto.SessionID) (info datatree.SessionInfo, known bool, epoch uint32) {
	s.RLock()
	defer s.RUnlock()
	info, known = s.tree.Session(id)
	return info, known, s.tree.LastZxid().Epoch()
}

// membership returns the members, and whether they are about to change. version is 0 if the tree
// does not name the members yet.
func (s *state) membership() (set serverlist.Set, version proto.Zxid, changing bool) {
	f := s.figures()
	return f.members, f.version, f.changing
}

// stats returns the figures of the tree that srvr and mntr have.
func (s *state) stats() facts.Stats { return s.figures().stats }

// figures returns the figures of the state, or of the one that was dropped.
func (s *state) figures() (f figures) {
	if before := s.look(func() {
		f.digest, f.limit = s.tree.Digest(), s.tree.Limit()
		f.members, f.version = s.tree.Config()
		_, f.changing = s.tree.PendingConfig()
		f.stats = facts.Stats{
			Growth: facts.Growth{
				Weight: s.tree.Weight(), Limit: f.limit.Weight, Full: f.limit.Full, Cause: f.limit.Cause.String(),
				Server: memberid.NumberOrNone(int(f.limit.Member)), Resumes: f.limit.Resumes(),
			},
			Zxid: int64(s.tree.LastZxid()), Znodes: s.tree.NumZnodes(), Ephemerals: s.tree.NumEphemerals(),
			Sessions: s.tree.NumSessions(), DataBytes: s.tree.ApproximateDataSize(), LongestListBytes: s.tree.LongestList(),
		}
		if p := s.largest.Load(); p != nil {
			f.stats.Growth.Largest, f.stats.Growth.LargestAge = p.largest, time.Since(p.at)
		}
	}); before != nil {
		return *before
	}
	return f
}

// rootGrants reports whether the ACL of the root znode gives all permissions to ids by name.
func (s *state) rootGrants(ids []proto.ID) bool {
	s.RLock()
	defer s.RUnlock()
	return s.tree.Granted("/", proto.PermAll, ids)
}

// waitList wakes goroutines that wait for the state of the server to change.
type waitList struct {
	mu      sync.Mutex // guards changed
	changed wakeup.Broadcast
}

// await waits until cond, called now and after each wake, is true. Errors are as of Life.Await.
func (l *waitList) await(ctx context.Context, life *lifecycle.Life, what string, cond func() bool) error {
	for {
		l.mu.Lock()
		changed := l.changed.Next()
		l.mu.Unlock()
		if cond() {
			return nil
		}
		if err := life.Await(ctx, changed, what); err != nil {
			return err
		}
	}
}

func (l *waitList) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changed.Send()
}

// restoreTree is datatree.Restore on two goroutines: the caller's reads and decodes the checkpoint
// while another goroutine, which ends before restoreTree returns, builds the tree.
func restoreTree(opts datatree.Options, kv iter.Seq2[[]byte, []byte]) (t *datatree.Tree, err error) {
	const ahead = 4 // batches that may wait for the builder
	batches, built := make(chan *datatree.Batch, ahead), make(chan struct{})
	// Ends when batches is closed, or at a bad key; the deferred function waits, even if kv panics.
	go func() {
		defer close(built)
		t, err = datatree.Build(opts, func(yield func(*datatree.Batch) bool) {
			for b := range batches {
				if !yield(b) {
					return
				}
			}
		})
	}()
	defer func() {
		close(batches)
		<-built
	}()
	for b := range datatree.Decode(kv) {
		select {
		case batches <- b:
		case <-built:
			return
		}
	}
	return
}
