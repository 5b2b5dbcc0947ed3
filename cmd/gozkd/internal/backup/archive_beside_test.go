package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive/store"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive/store/storetest"
	"github.com/gozkd/gozkd/internal/history"
	"github.com/gozkd/gozkd/proto"
)

// besides are the restores that run while members, shippers and the store go on and fail.
type besides struct {
	running sync.WaitGroup
	late    bool // new objects are listed late, so the one that replaces others may be missing for a while

	mu      sync.Mutex // guards the rest
	done    []besideRestore
	covered proto.Zxid     // the highest zxid that was restored
	ends    map[string]int // how often restores ended how
}

// besideRestore is the result of a restore.
type besideRestore struct {
	at     history.Moment
	zxid   proto.Zxid
	digest uint64
}

// restoreBeside starts to restore a sampled zxid, or one a little higher, or the last moment, as a
// process of its own does. At one of its requests that process may stand still, or lose the store.
// Every third restore makes a data directory.
func (s *shipping) restoreBeside(oldest int64) {
	var at history.Moment
	zxids := slices.DeleteFunc(slices.Sorted(maps.Keys(s.samples)), func(z int64) bool { return z < oldest })
	if len(zxids) > 0 && s.rand.IntN(4) > 0 {
		at.Zxid = proto.Zxid(zxids[s.rand.IntN(len(zxids))] + s.rand.Int64N(3))
	}
	c := &interrupted{Client: s.memory.Client(), left: s.rand.IntN(40)}
	if s.rand.IntN(4) > 0 {
		c.still = time.Duration(s.rand.IntN(1200)) * time.Second
	}
	into := ""
	if s.rand.IntN(3) == 0 {
		into = filepath.Join(s.temp, fmt.Sprint("restored", s.rand.Uint64()))
	}
	s.beside.mu.Lock()
	covered := s.beside.covered
	s.beside.mu.Unlock()
	s.beside.running.Go(func() { // awaited by compareBeside
		got, err := restoreAs(s.t.Context(), c, at, into)
		s.beside.ended(got, err)
		// An object that replaces others is in listings late: whoever looks again finds it.
		for range 10 {
			if !s.beside.late || !errors.Is(err, history.ErrNotCovered) || at.Zxid == 0 || at.Zxid > covered {
				break
			}
			time.Sleep(listDelay)
			got, err = restoreAs(s.t.Context(), s.memory.Client(), at, "")
			s.beside.ended(got, err)
		}
		switch {
		case err == nil, errors.Is(err, storetest.ErrFault), s.beside.late && errors.Is(err, store.ErrNotFound):
		case errors.Is(err, history.ErrNotCovered) && (at.Zxid == 0 || at.Zxid > covered):
		default:
			s.t.Errorf("restore of %+v, after %v had been restored, by a process that stood still for %v: %v",
				at, covered, c.still, err)
		}
		if _, missing := os.Stat(into); into != "" && err != nil && !errors.Is(missing, fs.ErrNotExist) {
			s.t.Errorf("a restore that failed has left %s: %v", into, err)
		}
	})
}

// restoreAs restores a moment from a store, into a data directory if into names one.
func restoreAs(
	ctx context.Context, c store.Store, at history.Moment, into string,
) (got besideRestore, err error) {
	read := func() (*source, error) {
		a, err := archive.Open(ctx, c, "")
		if err != nil {
			return nil, err
		}
		s, err := restoreMoment(ctx, a, at)
		if err == nil {
			got = besideRestore{at, s.tree.LastZxid(), s.tree.Digest()}
		}
		return s, err
	}
	if into == "" {
		_, err = read()
	} else {
		_, err = restore(ctx, read, target{1, into, into}, time.Now(), false)
	}
	return got, err
}

// ended counts a restore, and keeps its result.
func (b *besides) ended(got besideRestore, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	how := "restored"
	switch {
	case err == nil:
		b.done, b.covered = append(b.done, got), max(b.covered, got.zxid)
	case errors.Is(err, storetest.ErrFault):
		how = "the store failed"
	case errors.Is(err, store.ErrNotFound):
		how = "deleted meanwhile"
	case errors.Is(err, history.ErrNotCovered):
		how = "not covered"
	}
	if b.ends == nil {
		b.ends = make(map[string]int)
	}
	b.ends[how]++
}

// compareBeside compares what was restored beside the faults with the states of the whole history.
func (s *shipping) compareBeside(states map[int64]uint64) {
	s.t.Helper()
	zxids := slices.Sorted(maps.Keys(states))
	for _, r := range s.beside.done {
		digest, known := states[int64(r.zxid)]
		if !known && int64(r.zxid) < zxids[0] { // the retention has deleted it since
			continue
		}
		if !known || digest != r.digest {
			s.t.Errorf("%+v: restored zxid %v with digest %x, want %x (%v)", r.at, r.zxid, r.digest, digest, known)
		}
		next, _ := slices.BinarySearch(zxids, int64(r.zxid)+1)
		if next < len(zxids) && zxids[next] <= int64(r.at.Zxid) {
			s.t.Errorf("%v was restored as zxid %v, but there is %#x", r.at.Zxid, r.zxid, zxids[next])
		}
	}
	s.t.Logf("restores beside the faults: %v", s.beside.ends)
}

// interrupted is the store as a process sees it that stands still at one of its requests, or from
// then on cannot reach the store.
type interrupted struct {
	*storetest.Client
	left  int           // requests until then
	still time.Duration // 0: the process cannot reach the store
}

func (c *interrupted) interrupt() {
	switch c.left--; {
	case c.left >= 0:
	case c.still == 0:
		c.Kill()
	case c.left == -1:
		time.Sleep(c.still)
	}
}

func (c *interrupted) Get(ctx context.Context, name string) ([]byte, error) {
	c.interrupt()
	return c.Client.Get(ctx, name)
}

func (c *interrupted) List(ctx context.Context, prefix, after string) ([]store.Object, error) {
	c.interrupt()
	return c.Client.List(ctx, prefix, after)
}
