package backup

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive/store/storetest"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/replica"
	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/cluster"
	"github.com/gozkd/gozkd/internal/history"
	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/internal/testkit/logbuf"
	"github.com/gozkd/gozkd/internal/testkit/vfstest"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/server/facts"
)

// shipping is an ensemble whose members archive their logs, in virtual time.
type shipping struct {
	t       *testing.T
	rand    *rand.Rand
	memory  *storetest.Memory
	cluster *cluster.Cluster
	config  archive.Config
	log     logbuf.Buffer
	logger  hclog.Logger
	procs   map[int]*process
	disks   []*vfstest.Mem   // by member; none: the members keep their state in memory
	temp    string           // a directory
	hits    map[string]int   // how often each fault came
	samples map[int64]uint64 // digest by zxid
	gaps    int64
	pause   int // of a client between two writes, at most, in milliseconds
	beside  besides
}

// process is the shipper of a member.
type process struct {
	shipper *archive.Shipper
	client  *standingStore
	cancel  context.CancelFunc
	done    chan struct{}
}

const (
	shipInterval = 3 * time.Second
	listDelay    = 20 * time.Second
)

func newShipping(t *testing.T, seed uint64, members int) *shipping {
	t.Helper()
	return newShippingWith(t, seed, members, server.Config{ArchiveBytes: 64 << 20})
}

func newShippingWith(t *testing.T, seed uint64, members int, cfg server.Config) *shipping {
	t.Helper()
	s := &shipping{
		t: t, rand: rand.New(rand.NewPCG(seed, 2)), memory: storetest.New(seed), procs: make(map[int]*process), samples: make(map[int64]uint64),
		hits: make(map[string]int), temp: t.TempDir(),
		config: archive.Config{Interval: shipInterval, BaseInterval: 10 * time.Minute, BaseBytes: 1 << 30},
		pause:  400,
	}
	s.logger = hclog.New(&hclog.LoggerOptions{Output: &s.log})
	for range members {
		if members > 1 {
			s.disks = append(s.disks, vfstest.NewMem())
		}
	}
	var err error
	s.cluster, err = cluster.Start(t.Context(), cluster.Config{Members: members, InMemory: true, Server: cfg, Adapt: s.adapt})
	if err != nil {
		t.Fatal(err)
	}
	for id := 1; id <= members; id++ {
		s.start(id)
	}
	return s
}

func (s *shipping) member(id int) *cluster.Member {
	m, err := s.cluster.Member(id)
	if err != nil {
		s.t.Fatal(err)
	}
	return m
}

// start starts the shipper of a member that runs.
func (s *shipping) start(id int) {
	cfg := s.config
	p := &process{client: &standingStore{Client: s.memory.Client()}, done: make(chan struct{})}
	cfg.Store, cfg.Logger = p.client, s.logger.Named(fmt.Sprint("m", id))
	p.shipper = archive.New(cfg)
	var ctx context.Context
	ctx, p.cancel = context.WithCancel(context.Background())
	go func() { // stopped by cancel, awaited by kill
		defer close(p.done)
		p.shipper.Run(ctx, s.member(id).Server().Backups())
	}()
	s.procs[id] = p
}

// kill ends a shipper at any point of its work.
func (s *shipping) kill(id int) {
	if p := s.procs[id]; p != nil {
		p.client.Kill()
		p.client.stand(false)
		p.cancel()
		<-p.done
		s.gaps += p.shipper.Stats().Gaps
		delete(s.procs, id)
	}
}

// sample remembers the state of a member, and returns its zxid.
func (s *shipping) sample() (zxid int64) {
	m := s.member(1 + s.rand.IntN(len(s.cluster.Members())))
	if m.State() != cluster.Running { // a paused server may hold locks
		return 0
	}
	if srv := m.Server(); srv.NotServing() == nil {
		var digest uint64
		zxid, digest = srv.Facts().Digest()
		if was, ok := s.samples[zxid]; ok && was != digest {
			s.t.Errorf("two states of zxid %#x", zxid)
		}
		s.samples[zxid] = digest
	}
	return zxid
}

// watch samples for a while.
func (s *shipping) watch(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(time.Second / 2)
		s.sample()
	}
}

// end archives what is left, and ends everything.
func (s *shipping) end() {
	s.memory.Set(storetest.Faults{})
	s.beside.running.Wait()
	s.settle()
	for id := range s.procs {
		s.kill(id)
	}
	if err := s.cluster.Close(); err != nil {
		s.t.Error(err)
	}
}

// open reads the archive.
func (s *shipping) open() *archive.Archive {
	s.t.Helper()
	a, err := archive.Open(s.t.Context(), s.memory.Client(), "")
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

// rolledBack is an ensemble whose disks were brought back to an older state.
type rolledBack struct {
	id   string
	last uint64
	term uint64
}

// LogPosition implements archive.Source.
func (r *rolledBack) LogPosition() server.LogPosition {
	id, _ := strconv.ParseUint(r.id, 16, 64)
	return server.LogPosition{Ensemble: id, Applied: r.last, Leads: true}
}

// ReplicatedLog implements archive.Source.
func (r *rolledBack) ReplicatedLog(from uint64, _ int64) (list []consensus.LogEntry, err error) {
	for index := from; index <= r.last && err == nil; index++ {
		var e consensus.LogEntry
		e, err = consensus.DecodeLogEntry(index, []byte{byte(r.term), 0})
		list = append(list, e)
	}
	return list, err
}

// KeepLog implements archive.Source.
func (r *rolledBack) KeepLog(uint64) {}

// Capture implements archive.Source.
func (r *rolledBack) Capture(context.Context) (*facts.Capture, error) {
	return nil, errors.New("no leader")
}

// write writes with several clients until ctx ends.
func (s *shipping) write(ctx context.Context) (wait func()) {
	var wg sync.WaitGroup
	for i := range 2 {
		dial := func(_, address string, _ time.Duration) (net.Conn, error) {
			return s.cluster.Dial(context.Background(), address)
		}
		c, _, err := zk.Connect(strings.Split(s.cluster.ConnectString(), ","), 20*time.Second, zk.WithDialer(dial), zk.WithLogger(quiet{}))
		if err != nil {
			s.t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(uint64(i), s.rand.Uint64()))
		wg.Go(func() {
			defer c.Close()
			for n := 0; ctx.Err() == nil; n++ {
				path := fmt.Sprintf("/n%d", r.IntN(20))
				switch r.IntN(4) { // errors are part of the history
				case 0:
					_, _ = c.Create(path, []byte(fmt.Sprint(n)), int32(r.IntN(4)), zk.WorldACL(zk.PermAll))
				case 1:
					_ = c.Delete(path, -1)
				case 2:
					_, _ = c.Multi(&zk.SetDataRequest{Path: path, Data: []byte("m"), Version: -1}, &zk.DeleteRequest{Path: "/none", Version: -1})
				default:
					_, _ = c.Set(path, []byte(strings.Repeat("x", r.IntN(200))), -1)
				}
				time.Sleep(time.Duration(r.IntN(s.pause)) * time.Millisecond)
			}
		})
	}
	return wg.Wait
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

// settle waits until everything is archived.
func (s *shipping) settle() {
	s.memory.Set(storetest.Faults{})
	s.memory.Settle()
	for range 400 {
		time.Sleep(shipInterval)
		lag := time.Duration(0)
		for _, p := range s.procs {
			lag += p.shipper.Stats().Lag
		}
		if lag == 0 {
			time.Sleep(listDelay) // until everything is in listings
			return
		}
	}
	for _, p := range s.procs {
		s.t.Logf("%+v", p.shipper.Stats())
	}
	s.t.Fatalf("the archive does not catch up\n%s\n%s", s.log.String(), strings.Join(s.memory.Names(), "\n"))
}

// compare replays the archive and compares every sampled moment from a zxid on. It returns how many
// of them were compared.
func (s *shipping) compare(a *archive.Archive, from int64) (compared int) {
	s.t.Helper()
	r := &checked{t: s.t, samples: s.samples, seen: make(map[int64]uint64)}
	r.Restored = r.compare
	r.HandOut(func(*replica.Txn) bool { r.compare(); return true })
	for _, span := range a.Spans() {
		// An entry that begins a term has no transaction, and a zxid.
		after := func(consensus.LogEntry) bool { r.compare(); return false }
		if _, err := a.Replay(s.t.Context(), span, &r.Replica, after, time.Time{}); err != nil {
			s.t.Fatal(err)
		}
	}
	for zxid, digest := range s.samples {
		if zxid < from {
			continue
		}
		if _, ok := r.seen[zxid]; !ok {
			s.t.Errorf("zxid %#x is not in the archive", zxid)
		}
		if compared++; compared <= 3 { // as a command does it
			got, err := restoreMoment(s.t.Context(), a, history.Moment{Zxid: proto.Zxid(zxid)})
			if err != nil {
				s.t.Fatalf("restore zxid %#x: %v", zxid, err)
			}
			if got.tree.LastZxid() != proto.Zxid(zxid) || got.tree.Digest() != digest {
				s.t.Errorf("restored zxid %v with digest %x, want %#x with %x", got.tree.LastZxid(), got.tree.Digest(), zxid, digest)
			}
			if ToZooKeeperAndBack != nil && s.disks != nil {
				s.compareMoved(got.tree)
			}
		}
	}
	s.compareBeside(r.seen)
	if err := s.memory.Clash(); err != nil {
		s.t.Error(err)
	}
	return compared
}

// ToZooKeeperAndBack returns the state of a data directory after an export to ZooKeeper and an
// import.
var ToZooKeeperAndBack func(t *testing.T, dir string) *datatree.Tree

// compareMoved restores a moment of the archive with the command, moves the directory to ZooKeeper
// and back, and compares the znodes with want.
func (s *shipping) compareMoved(want *datatree.Tree) {
	s.t.Helper()
	root, into := s.t.TempDir(), filepath.Join(s.t.TempDir(), "into")
	s.memory.Each(func(name string, data []byte) {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, data, 0o600)); err != nil {
			s.t.Fatal(err)
		}
	})
	url := "file:///" + strings.TrimPrefix(filepath.ToSlash(root), "/")
	mustRun(s.t, Restore, url, "--at", fmt.Sprintf("%#x", int64(want.LastZxid())), "--into", into)
	restored := mustRead(s.t, into).tree
	if had, has := persistent(want), persistent(restored); !slices.Equal(had, has) {
		s.t.Errorf("zxid %v: the directory that restore has made has %q, want %q", want.LastZxid(), has, had)
	}
	back, sum := ToZooKeeperAndBack(s.t, into), datatree.NewReplay(restored).Digest()
	if got := datatree.NewReplay(back).Digest(); got != sum || back.LastZxid() != restored.LastZxid() {
		s.t.Errorf("zxid %v: moved to ZooKeeper and back, zxid %v has digest %x, want %x of %v",
			want.LastZxid(), back.LastZxid(), got, sum, restored.LastZxid())
	}
}

// persistent describes the znodes of clients that outlive a restore, which ends all sessions.
func persistent(tree *datatree.Tree) (znodes []string) {
	tree.Walk("/", func(z proto.Znode) bool {
		if s := z.Stat; s.EphemeralOwner == 0 && z.Path != "/" && !strings.HasPrefix(z.Path, "/zookeeper") {
			znodes = append(znodes, fmt.Sprintf("%s %q %v %v %d", z.Path, z.Data, s.Czxid, s.Mzxid, s.Version))
		}
		return true
	})
	return znodes
}

// checked is a replica that compares digests on its way.
type checked struct {
	replica.Replica
	t       *testing.T
	samples map[int64]uint64
	seen    map[int64]uint64
}

func (c *checked) compare() {
	zxid := int64(c.Tree.LastZxid())
	c.seen[zxid] = c.Tree.Digest()
	if want, ok := c.samples[zxid]; ok && want != c.Tree.Digest() {
		c.t.Errorf("zxid %#x has digest %x, was %x", zxid, c.Tree.Digest(), want)
	}
}

// Whatever dies, shippers, members with the leader among them, or the store, which also loses,
// delays and repeats requests and lists late, whoever is cut off, or stands still in the midst of
// an upload, and whatever disks lose: every sampled moment restores to exactly the state that was,
// also by way of a ZooKeeper, and the log has no gap.
func TestArchive_Kills(t *testing.T) {
	kills, plans := exhaustive.Or(16, 50), exhaustive.Or(2, 20)
	for plan := range plans {
		t.Run(fmt.Sprint(plan), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShipping(t, uint64(plan), 3)
				s.beside.late = true
				ctx, cancel := context.WithCancel(t.Context())
				wait := s.write(ctx)
				time.Sleep(10 * time.Second) // the first base is there
				from, _ := s.member(1).Server().Facts().Digest()
				for done := 0; done < kills; {
					for range 1 + s.rand.IntN(10) {
						time.Sleep(time.Duration(s.rand.IntN(1000)) * time.Millisecond)
						s.sample()
					}
					if s.step() {
						done++
					}
					if s.rand.IntN(3) == 0 {
						s.restoreBeside(from)
					}
				}
				s.memory.Set(storetest.Faults{})
				s.revive()
				cancel()
				wait()
				s.sample()
				s.end()
				a := s.open()
				if spans := a.Spans(); len(spans) != 1 || s.gaps > 0 {
					t.Fatalf("%d spans, %d gaps\n%s\n%s", len(spans), s.gaps, s.log.String(), strings.Join(s.memory.Names(), "\n"))
				}
				if n := s.compare(a, from); n < kills/2 {
					t.Errorf("only %d moments were compared", n)
				}
				select {
				case err := <-s.cluster.Failed():
					t.Error(err)
				default:
				}
				t.Logf("%v", s.hits)
			})
		})
	}
}
