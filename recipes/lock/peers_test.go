package lock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/lock"
)

// peer stands in line by the rules of Curator or kazoo, not by ours.
type peer struct{ conn *zk.Conn }

// decide says whether it is the turn of own, and otherwise which znode to watch.
type decide func(children []string, own string) (watch string, turn bool)

// stand waits for its turn, and returns its path and the Pzxid that the peer saw then.
func (p *peer) stand(dir, name string, rule decide) (path string, token int64, err error) {
	path, err = p.conn.Create(dir+"/"+name, nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
	for err == nil {
		children, stat, e := p.conn.Children(dir)
		if e != nil {
			return path, 0, e
		}
		watch, turn := rule(children, path[len(dir)+1:])
		if turn {
			return path, int64(stat.Pzxid), nil
		}
		_, _, fires, e := p.conn.GetW(dir + "/" + watch)
		if errors.Is(e, zk.ErrNoNode) {
			continue
		}
		if err = e; err == nil {
			<-fires
		}
	}
	return path, 0, err
}

// fix returns the part by which Curator sorts: after the last of any of names, or all of s.
func fix(s string, names ...string) string {
	for _, name := range names {
		if i := strings.LastIndex(s, name); i >= 0 {
			s = s[i+len(name):]
		}
	}
	return s
}

// curator is StandardLockInternalsDriver for a number of leases. names are those of its lock, or
// both of its read/write lock.
func curator(leases int, names ...string) decide {
	return func(children []string, own string) (string, bool) {
		slices.SortStableFunc(children, func(a, b string) int { return strings.Compare(fix(a, names...), fix(b, names...)) })
		i := slices.Index(children, own)
		if i < leases {
			return "", true
		}
		return children[i-leases], false
	}
}

// curatorReader is the driver of InterProcessReadWriteLock.ReadLock.
func curatorReader(children []string, own string) (string, bool) {
	slices.SortStableFunc(children, func(a, b string) int {
		return strings.Compare(fix(a, "__READ__", "__WRIT__"), fix(b, "__READ__", "__WRIT__"))
	})
	first := slices.IndexFunc(children, func(name string) bool { return strings.Contains(name, "__WRIT__") })
	if first < 0 || slices.Index(children, own) < first {
		return "", true
	}
	return children[first], false
}

// kazoo is Lock._get_predecessor; names are those that exclude the contender.
func kazoo(names ...string) decide {
	contender := regexp.MustCompile("(?:" + strings.Join(names, "|") + `)(-?\d{10})$`)
	return func(children []string, own string) (string, bool) {
		before, watch := "", ""
		for _, name := range children {
			m := contender.FindStringSubmatch(name)
			if m != nil && m[1] < own[len(own)-10:] && m[1] > before {
				before, watch = m[1], name
			}
		}
		return watch, watch == ""
	}
}

const guid = "0123456789abcdef0123456789abcdef"

// shareKind is a way in which Go and peers share a path.
type shareKind struct {
	name  string
	total int
	dirs  []string // parents that peers do not create
	goes  func(c *recipes.Client, random *rand.Rand) (held, int, func(context.Context) error, error)
	peers []func(p *peer) (path string, token int64, takes int, err error)
}

func shareKinds() []shareKind {
	locks := func(total int, of ...func(c *recipes.Client) lock.Locker) func(*recipes.Client, *rand.Rand) (held, int, func(context.Context) error, error) {
		return func(c *recipes.Client, random *rand.Rand) (held, int, func(context.Context) error, error) {
			l := of[random.IntN(len(of))](c)
			takes := 1
			if _, ok := l.(*lock.RWMutex); ok {
				takes = total
			}
			h, err := l.Lock(context.Background())
			if err != nil {
				return nil, 0, nil, err
			}
			if rw, ok := l.(*lock.RWMutex); ok && random.IntN(2) == 0 {
				if h, err = rw.Downgrade(context.Background(), h); err != nil {
					return nil, 0, nil, err
				}
				takes = 1
			}
			return h, takes, h.Release, nil
		}
	}
	stands := func(name string, takes int, rule decide) func(p *peer) (string, int64, int, error) {
		return func(p *peer) (string, int64, int, error) {
			path, token, err := p.stand("/x", name, rule)
			return path, token, takes, err
		}
	}
	mutex := func(c *recipes.Client) lock.Locker { return lock.NewMutex(c, "/x", nil) }
	kazooMutex := func(c *recipes.Client) lock.Locker { return lock.NewKazooMutex(c, "/x", nil) }
	rw := func(c *recipes.Client) lock.Locker { return lock.NewRWMutex(c, "/x", nil) }
	r := func(c *recipes.Client) lock.Locker { return lock.NewRWMutex(c, "/x", nil).RLocker() }
	kazooRW := func(c *recipes.Client) lock.Locker { return lock.NewKazooRWMutex(c, "/x", nil) }
	kazooR := func(c *recipes.Client) lock.Locker { return lock.NewKazooRWMutex(c, "/x", nil).RLocker() }
	semaphore := func(of func(c *recipes.Client) *lock.Semaphore) func(*recipes.Client, *rand.Rand) (held, int, func(context.Context) error, error) {
		return func(c *recipes.Client, random *rand.Rand) (held, int, func(context.Context) error, error) {
			leases, err := of(c).AcquireN(context.Background(), 1+random.IntN(2))
			if err != nil {
				return nil, 0, nil, err
			}
			return leases[0], len(leases), func(ctx context.Context) error {
				for _, l := range leases {
					err = errors.Join(err, l.Release(ctx))
				}
				return err
			}, nil
		}
	}
	return []shareKind{
		{"InterProcessMutex, and kazoo with Curator's names", 1, nil, locks(1, mutex), []func(*peer) (string, int64, int, error){
			stands("_c_"+guid+"-lock-", 1, curator(1, "lock-")),
			stands(guid+"-lock-", 1, kazoo("-lock-")),
		}},
		{"kazoo's Lock", 1, nil, locks(1, kazooMutex), []func(*peer) (string, int64, int, error){
			stands(guid+"__lock__", 1, kazoo("__lock__")),
		}},
		{"kazoo's Lock with extra_lock_patterns", 1, nil, locks(1, mutex, kazooMutex), []func(*peer) (string, int64, int, error){
			stands(guid+"__lock__", 1, kazoo("__lock__", "lock-")),
		}},
		{"InterProcessReadWriteLock", readers, nil, locks(readers, rw, r), []func(*peer) (string, int64, int, error){
			stands("_c_"+guid+"-__READ__", 1, curatorReader),
			stands("_c_"+guid+"-__WRIT__", readers, curator(1, "__READ__", "__WRIT__")),
			curatorDowngrade,
		}},
		{"kazoo's ReadLock and WriteLock", readers, nil, locks(readers, kazooRW, kazooR), []func(*peer) (string, int64, int, error){
			stands(guid+"__rlock__", 1, kazoo("__lock__")),
			stands(guid+"__lock__", readers, kazoo("__lock__", "__rlock__")),
		}},
		{"kazoo's ReadLock and WriteLock with extra_lock_patterns", readers, nil, locks(readers, kazooRW, kazooR, rw, r), []func(*peer) (string, int64, int, error){
			stands(guid+"__rlock__", 1, kazoo("__lock__", "__WRIT__")),
			stands(guid+"__lock__", readers, kazoo("__lock__", "__rlock__", "__READ__", "__WRIT__")),
		}},
		{"InterProcessSemaphoreV2", 2, []string{"/x/locks", "/x/leases"}, semaphore(func(c *recipes.Client) *lock.Semaphore { return lock.NewSemaphore(c, "/x", 2, nil) }),
			[]func(*peer) (string, int64, int, error){func(p *peer) (string, int64, int, error) {
				return p.lease("/x/locks", "_c_"+guid+"-lock-", curator(1, "lock-"), "/x/leases", 2, false)
			}}},
		{"kazoo's Semaphore", 2, []string{"/x/sem", "/x/sem-__lock__"}, semaphore(func(c *recipes.Client) *lock.Semaphore { return lock.NewKazooSemaphore(c, "/x/sem", 2, nil) }),
			[]func(*peer) (string, int64, int, error){func(p *peer) (string, int64, int, error) {
				return p.lease("/x/sem-__lock__", guid+"__lock__", kazoo("__lock__"), "/x/sem", 2, true)
			}}},
	}
}

// curatorDowngrade is a write lock of Curator's that was turned into a read lock.
func curatorDowngrade(p *peer) (path string, token int64, takes int, err error) {
	writer, _, err := p.stand("/x", "_c_"+guid+"-__WRIT__", curator(1, "__READ__", "__WRIT__"))
	if err != nil {
		return "", 0, 0, err
	}
	number := writer[len(writer)-10:]
	path, err = p.conn.Create("/x/_c_"+guid+"-__READ__"+number, nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	_, stat, e := p.conn.Children("/x")
	if err = errors.Join(err, e, p.conn.Delete(writer, -1)); err != nil {
		return "", 0, 0, err
	}
	return path, int64(stat.Pzxid), 1, nil
}

// lease is InterProcessSemaphoreV2.internalAcquire1Lease, which counts after it has created the
// lease, or Semaphore._get_lease, which counts before.
func (p *peer) lease(locks, name string, rule decide, leases string, maximum int, before bool) (string, int64, int, error) {
	turn, _, err := p.stand(locks, name, rule)
	if err != nil {
		return "", 0, 0, err
	}
	create := func() (string, error) {
		if before {
			return p.conn.Create(leases+"/"+fmt.Sprintf("%032x", rand.Uint64()), nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		}
		return p.conn.Create(leases+"/_c_"+guid+"-lease-", nil, zk.FlagEphemeralSequential, zk.WorldACL(zk.PermAll))
	}
	path := ""
	if !before {
		path, err = create()
	}
	for err == nil {
		children, stat, fires, e := p.conn.ChildrenW(leases)
		if err = e; err != nil {
			break
		}
		switch {
		case before && len(children) < maximum:
			if path, err = create(); err == nil {
				var there bool
				there, stat, err = p.conn.Exists(path)
				if err == nil && !there {
					err = errors.New("the lease is gone")
				}
				return path, int64(stat.Czxid), 1, errors.Join(err, p.conn.Delete(turn, -1))
			}
		case !before && len(children) <= maximum:
			return path, int64(stat.Pzxid), 1, p.conn.Delete(turn, -1)
		default:
			<-fires
		}
	}
	return "", 0, 0, err
}

// TestPeers is K1 and K2 where Go clients share a path with peers that act like Curator or kazoo.
func TestPeers(t *testing.T) {
	recipetest.Check(t, func(rt *rapid.T) (int, func(t testing.TB, w *recipetest.World)) {
		all := shareKinds()
		k := all[rapid.IntRange(0, len(all)-1).Draw(rt, "kind")]
		seed := rapid.Uint64().Draw(rt, "seed")
		return 1, func(t testing.TB, w *recipetest.World) { share(t, w, k, seed) }
	})
}

func share(t testing.TB, w *recipetest.World, k shareKind, seed uint64) {
	const rounds = 5
	for _, dir := range append([]string{"/x"}, k.dirs...) {
		w.Load(map[string]string{dir: ""})
	}
	holds := recipetest.NewHoldHistory(k.total)
	var wg sync.WaitGroup
	for i := range 4 {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		pause := func() { time.Sleep(time.Duration(random.IntN(1000)) * time.Millisecond) }
		if i%2 == 0 {
			c := w.Client()
			wg.Go(func() {
				for range rounds {
					h, takes, letGo, err := k.goes(c, random)
					if err != nil {
						t.Error(err)
						return
					}
					holds.Begin(h.Context(), h.Token(), takes)
					pause()
					check(t, letGo(t.Context()))
					pause()
				}
			})
			continue
		}
		p := &peer{w.Connect(t)}
		wg.Go(func() {
			for range rounds {
				path, token, takes, err := k.peers[random.IntN(len(k.peers))](p)
				if err != nil {
					t.Error(err)
					return
				}
				ctx, cancel := context.WithCancel(t.Context())
				holds.Begin(ctx, token, takes)
				pause()
				cancel()
				check(t, p.conn.Delete(path, -1))
				pause()
			}
		})
	}
	wg.Wait()
	if err := holds.Err(); err != nil || holds.Len() != 4*rounds {
		t.Errorf("%s: %d of %d, %v", k.name, holds.Len(), 4*rounds, err)
	}
}
