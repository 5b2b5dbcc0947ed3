package backup

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive/store"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive/store/storetest"
	"github.com/gozkd/gozkd/internal/cluster"
	"github.com/gozkd/gozkd/internal/confighook"
	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/internal/testkit/vfstest"
	"github.com/gozkd/gozkd/server"
)

// adapt gives a member its disk. Only files of backups are in the real directory.
func (s *shipping) adapt(member int, c *server.Config) {
	if s.disks == nil {
		return
	}
	disk := s.disks[member-1]
	disk.Kill()
	c.Memory, c.Dir, c.SnapCount, c.SegmentBytes = nil, s.temp, 100, 64<<10
	confighook.Of(c).LogFS, confighook.Of(c).DataFS = disk, disk
}

// misbehave draws faults of the store.
func (s *shipping) misbehave() {
	f := storetest.Faults{ListDelay: listDelay}
	switch s.rand.IntN(4) {
	case 0:
		f.Down = true
	case 1:
		f.Fail, f.LoseReply, f.Repeat, f.MaxDelay = 0.3, 0.3, 0.3, 10*time.Second
	case 2:
		f.MaxDelay, f.Repeat = 40*time.Second, 0.2
	}
	s.memory.Set(f)
}

// step kills something, or lets it live again.
func (s *shipping) step() (killed bool) {
	id := 1 + s.rand.IntN(len(s.cluster.Members()))
	switch s.rand.IntN(8) {
	case 0, 1: // a shipper
		if s.procs[id] == nil || s.member(id).State() == cluster.Paused {
			break
		}
		s.kill(id)
		if s.member(id).State() == cluster.Running {
			s.start(id)
		}
		return true
	case 2: // a member, and the shipper in its process
		down := 0
		for _, m := range s.cluster.Members() {
			if m.State() != cluster.Running {
				down++
			}
		}
		if 2*(down+1) >= len(s.cluster.Members())+1 && s.rand.IntN(3) > 0 {
			break // mostly the others are a quorum
		}
		if s.member(id).State() == cluster.Running {
			s.kill(id)
			s.killMember(id)
			if s.rand.IntN(2) == 0 {
				s.hits["power loss"]++
				s.disks[id-1] = s.disks[id-1].Crash(s.rand.IntN)
			}
			return true
		}
	case 3:
		s.misbehave()
		return true
	case 4, 5: // a member is cut off from the others, but not from the store
		s.hits["cut"]++
		if err := s.cluster.Partition([]int{id}); err != nil {
			s.t.Fatal(err)
		}
		return true
	case 6:
		return s.empty(id)
	case 7: // a process stands still, a member with its shipper
		if exhaustive.Enabled() && s.member(id).State() == cluster.Running {
			s.hits["paused"]++
			if err := s.member(id).Pause(); err != nil {
				s.t.Fatal(err)
			}
			if p := s.procs[id]; p != nil {
				p.client.stand(true)
			}
			return true
		}
	}
	if s.rand.IntN(2) == 0 {
		s.revive()
	}
	return false
}

func (s *shipping) killMember(id int) {
	if err := s.member(id).Kill(); err != nil {
		s.t.Fatal(err)
	}
}

// empty replaces a member's disk, if no other is away, and returns when the member votes again, and
// what it had is archived, which others must do.
func (s *shipping) empty(id int) bool {
	if !s.whole() {
		return false
	}
	s.hits["emptied"]++
	had := s.member(id).Server().Backups().LogPosition().Applied
	s.kill(id)
	s.killMember(id)
	s.disks[id-1] = vfstest.NewMem()
	s.memory.Set(storetest.Faults{})
	s.revive()
	for range 300 {
		if time.Sleep(time.Second); s.whole() && s.archived() >= had {
			return true
		}
	}
	s.t.Fatalf("member %d, whose disk was emptied, does not vote, or entry %d is not archived", id, had)
	return false
}

// whole reports whether all members serve, and vote.
func (s *shipping) whole() bool {
	return !slices.ContainsFunc(s.cluster.Members(), func(m *cluster.Member) bool {
		return m.State() != cluster.Running || !m.Server().Status().Serving || !m.Server().Status().Whole
	})
}

// archived returns the index of the last entry in the archive.
func (s *shipping) archived() (last uint64) {
	for _, name := range s.memory.Names() {
		if _, entries, ok := strings.Cut(name, "/log/"); ok {
			n, _ := strconv.ParseUint(entries[21:41], 10, 64) // 0 fails the test
			last = max(last, n)
		}
	}
	return last
}

// revive heals the network, lets those go on that stand still, and starts members that are down.
func (s *shipping) revive() {
	s.cluster.Heal()
	var starts sync.WaitGroup
	for _, m := range s.cluster.Members() {
		switch m.State() {
		case cluster.Paused:
			if err := m.Resume(); err != nil {
				s.t.Fatal(err)
			}
			if p := s.procs[m.ID()]; p != nil {
				p.client.stand(false)
			}
		case cluster.Down:
			starts.Go(func() {
				if err := m.Start(s.t.Context()); err != nil {
					s.t.Error(err)
				}
			})
		}
	}
	starts.Wait()
	for _, m := range s.cluster.Members() {
		if s.procs[m.ID()] == nil {
			s.start(m.ID())
		}
	}
}

// standingStore is the store as a process sees it that may stand still, before a request or in the
// midst of it.
type standingStore struct {
	*storetest.Client
	mu    sync.Mutex
	still chan struct{} // closed when the process goes on; nil: it does not stand still
}

// stand makes the process stand still, or go on.
func (c *standingStore) stand(still bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case still && c.still == nil:
		c.still = make(chan struct{})
	case !still && c.still != nil:
		close(c.still)
		c.still = nil
	}
}

// within runs a request, and waits before and after it while the process stands still.
func (c *standingStore) within(request func() error) error {
	await := func() {
		c.mu.Lock()
		still := c.still
		c.mu.Unlock()
		if still != nil {
			<-still
		}
	}
	await()
	defer await()
	return request()
}

func (c *standingStore) Put(ctx context.Context, name string, data []byte) error {
	return c.within(func() error { return c.Client.Put(ctx, name, data) })
}

func (c *standingStore) Get(ctx context.Context, name string) (data []byte, err error) {
	err = c.within(func() error { data, err = c.Client.Get(ctx, name); return err })
	return data, err
}

func (c *standingStore) List(ctx context.Context, prefix, after string) (list []store.Object, err error) {
	err = c.within(func() error { list, err = c.Client.List(ctx, prefix, after); return err })
	return list, err
}

func (c *standingStore) Delete(ctx context.Context, name string) error {
	return c.within(func() error { return c.Client.Delete(ctx, name) })
}
