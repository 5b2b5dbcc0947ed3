package zktest_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/zktest"
)

// action is a fault, or its end, and the time until the next action.
type action struct {
	Kind   string
	Member int
	Then   time.Duration
}

func (a action) String() string { return fmt.Sprintf("%s %d, then %v", a.Kind, a.Member, a.Then) }

var actions = []string{
	"kill", "stop", "start", "start", "restart", "pause", "resume", "resume", "partition", "heal", "heal", "split", "mend", "disconnect",
	"kill all", "start all", "advance", "advance", "expire", "drop", "delay",
}

// Whatever happens to servers: acknowledged data stays, sequence numbers do not repeat, and
// ephemerals exist exactly as long as their sessions.
func TestFaults_LoseNothing(t *testing.T) {
	exhaustive.Checks(t, 4, 100)
	rapid.Check(t, func(rt *rapid.T) {
		members := rapid.SampledFrom([]int{1, 3, 3, 5}).Draw(rt, "members")
		plan := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) action {
			return action{
				rapid.SampledFrom(actions).Draw(rt, "kind"), rapid.IntRange(1, members).Draw(rt, "member"),
				time.Duration(rapid.IntRange(0, 3000).Draw(rt, "then_ms")) * time.Millisecond,
			}
		}), 1, 12).Draw(rt, "plan")
		var failure string
		synctest.Test(t, func(t *testing.T) {
			r := record(t, func(t testing.TB) { (&trial{e: zktest.StartEnsemble(t, members), t: t}).run(plan) })
			if r.Failed() {
				failure = r.text()
			}
		})
		if failure != "" { // not from within the bubble, which belongs to another test
			rt.Fatal(failure)
		}
	})
}

// trial is one ensemble with clients that write all the time, and the replies that they got.
type trial struct {
	e *zktest.Ensemble
	t testing.TB

	mu       sync.Mutex
	data     map[string]string // acknowledged persistent sequential znodes
	owners   map[string]int64  // acknowledged ephemerals
	versions map[int32]bool    // acknowledged versions of /counter
}

func (r *trial) run(plan []action) {
	r.data, r.owners, r.versions = map[string]string{}, map[string]int64{}, map[int32]bool{}
	r.e.Load(map[string]string{"/counter": "", "/q": "", "/e": ""})
	var wg sync.WaitGroup
	stop := make(chan struct{})
	defer wg.Wait() // also if the test fails here, since nothing else would end them
	end := sync.OnceFunc(func() { close(stop) })
	defer end()
	var conns []*zk.Conn
	for i := range 3 {
		c := r.e.ConnectTimeout(r.t, 2*time.Second)
		conns = append(conns, c)
		wg.Go(func() { // stopped by stop, awaited below
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				case <-time.After(20 * time.Millisecond):
					r.write(c, fmt.Sprintf("%d.%d", i, n), n)
				}
			}
		})
	}
	for _, a := range plan {
		r.do(a, conns)
		time.Sleep(a.Then)
	}
	r.e.ClearFaults()
	for _, m := range r.e.Members() {
		r.wake(m)
		m.Heal()
		if m.Server() == nil {
			m.Start()
		}
	}
	r.e.Heal()
	r.e.Leader()
	end()
	wg.Wait()
	r.check()
}

func (r *trial) write(c *zk.Conn, value string, n int) {
	switch n % 3 {
	case 0:
		if path, err := c.Create("/q/n-", []byte(value), zk.FlagSequence, open); err == nil {
			r.note(func() {
				if before, twice := r.data[path]; twice {
					r.t.Errorf("%s was made for %q and for %q", path, before, value)
				}
				r.data[path] = value
			})
		}
	case 1:
		before := c.SessionID()
		path, err := c.Create("/e/n-", []byte(value), zk.FlagEphemeralSequential, open)
		if err == nil && before == c.SessionID() {
			r.note(func() { r.owners[path] = before })
		}
	case 2:
		if st, err := c.Set("/counter", []byte(value), -1); err == nil {
			r.note(func() {
				if r.versions[st.Version] {
					r.t.Errorf("version %d was acknowledged twice", st.Version)
				}
				r.versions[st.Version] = true
			})
		}
	}
}

func (r *trial) note(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

// wake resumes a member if it is paused.
func (r *trial) wake(m *zktest.Member) {
	if m.State() == zktest.Paused {
		m.Resume()
	}
}

// do carries out an action if the present state allows it.
func (r *trial) do(a action, conns []*zk.Conn) {
	m := r.e.Member(a.Member)
	state := m.State()
	switch a.Kind {
	case "kill":
		if state != zktest.Down {
			m.Kill()
		}
	case "stop":
		if state == zktest.Running {
			m.Stop()
		}
	case "start":
		if state == zktest.Down {
			m.Start()
		}
	case "restart":
		m.Restart()
	case "pause":
		if state == zktest.Running {
			m.Pause()
		}
	case "resume":
		r.wake(m)
	case "partition":
		m.Partition()
	case "heal":
		m.Heal()
	case "split":
		if len(r.e.Members()) > 1 {
			r.e.Partition([]int{a.Member})
		}
	case "mend":
		r.e.Heal()
	case "disconnect":
		if state != zktest.Down {
			m.Disconnect()
		}
	case "kill all":
		for _, m := range r.e.Members() {
			if m.State() != zktest.Down {
				m.Kill()
			}
		}
	case "start all":
		for _, m := range r.e.Members() {
			if m.State() == zktest.Down {
				m.Start()
			}
		}
	case "advance", "expire":
		r.e.Heal()
		for _, m := range r.e.Members() {
			r.wake(m)
			if m.State() == zktest.Down {
				m.Start()
			}
		}
		if a.Kind == "advance" {
			r.e.Advance(a.Then*100 + 1)
		} else if id := conns[0].SessionID(); id != 0 {
			for _, s := range r.e.Sessions() {
				if s.ID == id {
					r.e.ExpireSession(id)
				}
			}
		}
	case "drop":
		r.e.DropReply(zktest.Create)
	case "delay":
		r.e.Delay(zktest.Set, a.Then+1)
	}
}

func (r *trial) check() {
	r.mu.Lock()
	defer r.mu.Unlock()
	tree := r.e.Tree("/")
	for path, want := range r.data {
		if got, ok := tree[path]; !ok || got != want {
			r.t.Errorf("%s was acknowledged with %q, and is %q (%t)", path, want, got, ok)
		}
	}
	alive := map[int64]bool{}
	for _, s := range r.e.Sessions() {
		alive[s.ID] = true
	}
	for path, owner := range r.owners {
		if _, ok := tree[path]; ok != alive[owner] {
			r.t.Errorf("ephemeral %s of session 0x%x: there: %t, its session: %t", path, owner, ok, alive[owner])
		}
	}
	for path := range tree {
		if strings.HasPrefix(path, "/e/") && !alive[int64(r.e.Znode(path).Stat.EphemeralOwner)] {
			r.t.Errorf("ephemeral %s has outlived its session", path)
		}
	}
	last := r.e.Znode("/counter").Stat.Version
	for v := range r.versions {
		if v > last {
			r.t.Errorf("version %d was acknowledged, and is %d now", v, last)
		}
	}
}
