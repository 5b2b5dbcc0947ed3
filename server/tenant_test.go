package server_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// budget sets the budget of a subtree or of /zookeeper/identities/<id>.
func (r *raw) budget(target string, ops, bytes int64) {
	r.t.Helper()
	text := []byte(proto.Quota{proto.QuotaOps: ops, proto.QuotaByteRate: bytes}.String())
	path := "/zookeeper/quota"
	for _, name := range strings.Split(target[1:]+"/zookeeper_budget", "/") {
		path += "/" + name
		if h, _ := r.call(1, proto.OpCreate, create{path: path}); h.Err != proto.OK && h.Err != proto.ErrNodeExists {
			r.t.Fatalf("create %s: %v", path, h.Err)
		}
	}
	if h, _ := r.call(2, proto.OpSetData, &proto.SetDataRequest{Path: path, Data: text, Version: -1}); h.Err != proto.OK {
		r.t.Fatal(h)
	}
}

// seek sends an exists for a path, and returns the code and how long the answer took.
func (r *raw) seek(path string) (proto.ErrCode, time.Duration) {
	r.t.Helper()
	return r.timed(proto.OpExists, &proto.PathWatchRequest{Path: path})
}

func (r *raw) timed(op proto.OpCode, body record) (proto.ErrCode, time.Duration) {
	r.t.Helper()
	began := time.Now()
	h, _ := r.call(7, op, body)
	return h.Err, time.Since(began)
}

// spends sends two transactions. If each has what a budget has per second, the first is done at
// once, the second waits for a second, and whoever comes next must wait longer.
func (r *raw) spends(body record) {
	r.t.Helper()
	b := encodeRequest(7, proto.OpMulti, body)
	r.burst(b, b)
	if h, _ := r.reply(); h.Err == proto.ErrThrottledOp {
		r.t.Error("a transaction is refused, which should only take tokens")
	}
}

// connected returns a new client with a session.
func connected(dial func() *raw) *raw {
	c := dial()
	c.connect(40_000, 0, nil)
	return c
}

var exists = encodeRequest(7, proto.OpExists, &proto.PathWatchRequest{Path: "/a"})

// greedy makes n clients send exists of /a for that time, and returns the replies by code. A
// request is refused after bound, and not otherwise.
func greedy(t *testing.T, dial func() *raw, n int, length, bound time.Duration) map[proto.ErrCode]int {
	t.Helper()
	var mu sync.Mutex
	var g sync.WaitGroup
	counts := make(map[proto.ErrCode]int)
	until := time.Now().Add(length)
	for range n {
		c := connected(dial)
		g.Go(func() { // ends with until
			for time.Now().Before(until) {
				began := time.Now()
				c.send(exists)
				b := c.tryRecv()
				if b == nil {
					t.Error("no reply")
					return
				}
				h, _ := decodeReply(b)
				if took := time.Since(began); took > bound || h.Err == proto.ErrThrottledOp && took != bound {
					t.Errorf("%v after %v", h.Err, took)
				}
				mu.Lock()
				counts[h.Err]++
				mu.Unlock()
			}
		})
	}
	g.Wait()
	return counts
}

// A tenant that sends without end gets its budget and what one second holds, and is only read
// later; requests of others are answered at once.
func TestTenant_Greedy(t *testing.T) {
	cfg := ticks
	cfg.Words = []string{"mntr"}
	bubble(t, cfg, func(t *testing.T, dial func() *raw) {
		other := connected(dial)
		other.budget("/a", 100, 0)
		var slowest time.Duration
		done := make(chan struct{})
		go func() { // ends by itself
			defer close(done)
			for range 1000 {
				_, took := other.seek("/b")
				slowest = max(slowest, took)
				time.Sleep(9 * time.Millisecond)
			}
		}()
		counts := greedy(t, dial, 20, 10*time.Second, time.Second)
		<-done
		if n := counts[proto.ErrNoNode]; n < 1100 || n > 1120 || counts[proto.ErrThrottledOp] > 0 {
			t.Errorf("in 10 s with 100 requests per second: %v", counts)
		}
		if slowest != 0 {
			t.Errorf("a request of another tenant waited %v", slowest)
		}
		if mntr := word(t, dial, "mntr"); !strings.Contains(mntr, "\nzk_a_gozkd_budget_waits_per_namespace\t") ||
			strings.Contains(mntr, "gozkd_budget_refusals") {
			t.Error(mntr)
		}
	})
}

// With more clients than the budget serves within the bound, the rest waits for the bound and is
// refused. What was refused has no effect and takes nothing.
func TestTenant_Refused(t *testing.T) {
	cfg := ticks
	cfg.BudgetWait = 2 * time.Second
	cfg.Words = []string{"mntr"}
	bubble(t, cfg, func(t *testing.T, dial func() *raw) {
		connected(dial).budget("/a", 10, 0)
		counts := greedy(t, dial, 50, 10*time.Second, cfg.BudgetWait)
		if n := counts[proto.ErrNoNode]; n < 10*10+10 || n > 10*12+10 || counts[proto.ErrThrottledOp] == 0 {
			t.Errorf("in 10 s, and 2 s for the last ones, with 10 requests per second: %v", counts)
		}
		c := connected(dial)
		time.Sleep(30 * time.Second)
		big := checks("/a", 40) // counts as 10
		if code, took := c.timed(proto.OpMulti, big); code == proto.ErrThrottledOp || took != 0 {
			t.Errorf("a multi with more than a second has: %v after %v", code, took)
		}
		for range 2 { // they wait for 1 s and 2 s
			connected(dial).request(1, proto.OpMulti, big)
			synctest.Wait()
		}
		// xids 1 and 2 come together, and are answered in their order.
		c.burst(encodeRequest(1, proto.OpCreate, create{path: "/a"}), encodeRequest(2, proto.OpExists, &proto.PathWatchRequest{Path: "/b"}))
		for i, want := range []proto.ErrCode{proto.ErrThrottledOp, proto.ErrNoNode} {
			if h, _ := c.reply(); h.Xid != int32(1+i) || h.Err != want {
				t.Errorf("%+v, want xid %d and %v", h, 1+i, want)
			}
		}
		if code, took := c.seek("/a"); code != proto.ErrNoNode || took != 100*time.Millisecond {
			t.Errorf("after a refused create: %v after %v", code, took)
		}
		has(t, dial, fmt.Sprintf("zk_a_gozkd_budget_refusals_per_namespace\t%d", counts[proto.ErrThrottledOp]+1))
	})
}

// A client waits at most for a third of its session's timeout, whatever the configuration says, so
// that it does not take the server for dead.
func TestTenant_ShortTimeout(t *testing.T) {
	cfg := ticks
	cfg.BudgetWait = time.Hour
	bubble(t, cfg, func(t *testing.T, dial func() *raw) {
		connected(dial).budget("/a", 1, 0)
		c := dial()
		timeout := time.Duration(c.connect(6000, 0, nil).TimeoutMs) * time.Millisecond
		connected(dial).spends(checks("/a", 100))
		connected(dial).send(exists) // waits for 2 s
		synctest.Wait()
		if code, took := c.seek("/a"); code != proto.ErrThrottledOp || took != timeout/3 {
			t.Errorf("%v after %v", code, took)
		}
	})
}

// checks returns a multi that checks a path n times.
func checks(path string, n int) *proto.MultiRequest {
	m := new(proto.MultiRequest)
	for range n {
		m.Ops = append(m.Ops, proto.MultiOp{Op: proto.OpCheck, Path: path, Version: -1})
	}
	return m
}

// Bytes that come and bytes that are read are charged.
func TestTenant_Bytes(t *testing.T) {
	bubble(t, ticks, func(t *testing.T, dial func() *raw) {
		c := connected(dial)
		c.call(1, proto.OpCreate, create{path: "/a"})
		c.budget("/a", 0, 10_000)
		for _, r := range []struct {
			op   proto.OpCode
			body record
			wait time.Duration
		}{
			{proto.OpSetData, &proto.SetDataRequest{Path: "/a", Data: make([]byte, 5000), Version: -1}, 0},
			{proto.OpGetData, &proto.PathWatchRequest{Path: "/a"}, 4 * time.Millisecond},
			{proto.OpMultiRead, &proto.MultiRequest{Ops: []proto.MultiOp{{Op: proto.OpGetData, Path: "/a"}}}, 500 * time.Millisecond},
			{proto.OpMulti, &proto.MultiRequest{Ops: []proto.MultiOp{{Op: proto.OpSetData, Path: "/a", Data: make([]byte, 5000), Version: -1}}}, 500 * time.Millisecond},
		} {
			code, took := c.timed(r.op, r.body)
			if code != proto.OK || took < r.wait || took > r.wait+20*time.Millisecond {
				t.Errorf("%v: %v after %v, want %v", r.op, code, took, r.wait)
			}
		}
	})
}

// Budgets of identities are for clients that have proved them, and not for the superuser.
func TestTenant_Identities(t *testing.T) {
	cfg := ticks
	cfg.SuperDigest = superDigest()
	bubble(t, cfg, func(t *testing.T, dial func() *raw) {
		with := func(users ...string) *raw {
			c := connected(dial)
			for _, user := range users {
				c.request(proto.XidAuth, proto.OpAuth, &proto.AuthRequest{Scheme: "digest", Auth: []byte(user)})
				if h, _ := c.reply(); h.Err != proto.OK {
					t.Fatal(h)
				}
			}
			return c
		}
		alice := "digest:" + digestOf("alice:secret")
		connected(dial).budget("/zookeeper/identities/"+strings.ReplaceAll(alice, "/", "%2F"), 5, 0)
		for _, c := range []struct {
			users []string
			waits bool
		}{
			{[]string{"alice:secret"}, true}, {[]string{"bob:x", "alice:secret"}, true}, {[]string{"alice:wrong"}, false},
			{nil, false}, {[]string{"alice:secret", "super:pw"}, false},
		} {
			time.Sleep(10 * time.Second) // nobody has a place in the budget any more
			for range 2 {
				with("alice:secret").request(7, proto.OpMulti, checks("/a", 5))
				synctest.Wait()
			}
			if code, took := with(c.users...).seek("/b"); (code == proto.ErrThrottledOp) != c.waits || (took > 0) != c.waits {
				t.Errorf("%v: %v after %v", c.users, code, took)
			}
		}
	})
}

// A multi over two subtrees waits for both. If one is beyond the bound, the other is not charged.
func TestTenant_MultiOfTwo(t *testing.T) {
	bubble(t, ticks, func(t *testing.T, dial func() *raw) {
		c, d := connected(dial), connected(dial)
		c.budget("/a", 10, 0)
		c.budget("/b", 10, 0)
		both := &proto.MultiRequest{Ops: append(checks("/a", 10).Ops, checks("/b", 10).Ops...)}
		d.call(1, proto.OpMulti, checks("/b", 10))
		d.request(2, proto.OpMulti, checks("/b", 5)) // waits for half a second
		synctest.Wait()
		if code, took := c.timed(proto.OpMulti, both); code != proto.ErrThrottledOp || took != time.Second {
			t.Errorf("%v after %v", code, took)
		}
		d.reply()
		d.call(1, proto.OpMulti, checks("/a", 10)) // all that /a has
		if code, took := c.timed(proto.OpMulti, both); code == proto.ErrThrottledOp || took != time.Second {
			t.Errorf("%v after %v", code, took)
		}
	})
}

// Pings, the end and the begin of a session go on while their tenant is over its budget. setWatches
// is charged and waits, but is not refused.
func TestTenant_NeverDelayed(t *testing.T) {
	bubble(t, ticks, func(t *testing.T, dial func() *raw) {
		first := connected(dial)
		first.budget("/zookeeper/identities/ip:127.0.0.1", 1, 0)
		connected(dial).spends(checks("/a", 5))
		began := time.Now()
		c := connected(dial)
		c.call(proto.XidPing, proto.OpPing, nil)
		c.call(1, proto.OpCloseSession, nil)
		if took := time.Since(began); took != 0 {
			t.Errorf("took %v", took)
		}
		none := &proto.SetWatchesRequest{Data: []string{}, Exist: []string{}, Child: []string{}}
		setWatches := bytesRecord(none.Append(nil, proto.OpSetWatches))
		if code, took := connected(dial).timed(proto.OpSetWatches, setWatches); code != proto.OK || took != time.Second {
			t.Errorf("setWatches: %v after %v", code, took)
		}
		if code, took := first.seek("/a"); code != proto.ErrThrottledOp || took != time.Second {
			t.Errorf("setWatches was not charged: %v after %v", code, took)
		}
		for range 20 {
			connected(dial).request(1, proto.OpSetWatches, setWatches)
			synctest.Wait()
		}
		time.Sleep(3 * time.Second)
		if code, took := first.seek("/a"); code != proto.ErrNoNode || took > time.Second {
			t.Errorf("many setWatches shut a client out: %v after %v", code, took)
		}
	})
}

// A change counts for the next requests, also of clients that wait; so does the end of a budget.
func TestTenant_Change(t *testing.T) {
	bubble(t, ticks, func(t *testing.T, dial func() *raw) {
		c, admin := connected(dial), connected(dial)
		admin.budget("/a", 1, 0)
		connected(dial).spends(checks("/a", 100))
		c.burst(exists, exists, exists)
		time.Sleep(500 * time.Millisecond)
		admin.budget("/a", 1000, 0)
		if h, _ := c.reply(); h.Err != proto.ErrNoNode { // it has waited for a second
			t.Error(h)
		}
		began := time.Now()
		for range 2 {
			if h, _ := c.reply(); h.Err != proto.ErrNoNode || time.Now() != began {
				t.Errorf("%+v after %v", h, time.Since(began))
			}
		}
		connected(dial).spends(checks("/a", 10_000))
		admin.call(1, proto.OpDelete, &proto.PathVersionRequest{Path: "/zookeeper/quota/a/zookeeper_budget", Version: -1})
		if code, took := c.seek("/a"); code != proto.ErrNoNode || took != 0 {
			t.Errorf("without a budget: %v after %v", code, took)
		}
	})
}

// A server that ends, and one whose client hangs up, do not wait for budgets.
func TestTenant_Close(t *testing.T) {
	cfg := ticks
	cfg.BudgetWait = time.Hour
	cfg.MaxSessionTimeout = 4 * time.Hour
	cfg.MaxClientConns = -1
	serverBubble(t, cfg, func(t *testing.T, s *server.Server, dial func() *raw) {
		connected(dial).budget("/a", 1, 0)
		for range 1000 {
			c := dial()
			c.connect(4*60*60*1000, 0, nil)
			c.send(exists)
			synctest.Wait()
		}
		began := time.Now()
		if err := s.Close(); err != nil || time.Since(began) > time.Minute {
			t.Errorf("closed after %v: %v", time.Since(began), err)
		}
	})
}

// A request that is routed again, because it must wait for a write before it, is charged once.
func TestTenant_ChargedOnce(t *testing.T) {
	cfg, hang := hangingDisk(t, ticks)
	bubble(t, cfg, func(t *testing.T, dial func() *raw) {
		c := connected(dial)
		c.call(1, proto.OpCreate, create{path: "/a"})
		c.budget("/a", 10, 0)
		hang.Store(true)
		path := "/a"
		c.burst(encodeRequest(1, proto.OpSetData, &proto.SetDataRequest{Path: path, Version: -1}),
			encodeRequest(2, proto.OpGetAllChildrenNumber, &proto.PathRequest{Path: &path}))
		for range 2 {
			if h, _ := c.reply(); h.Err != proto.OK {
				t.Error(h)
			}
		}
		if code, took := c.timed(proto.OpMulti, checks("/a", 10)); code != proto.OK || took != 0 {
			t.Errorf("%v after %v", code, took)
		}
	})
}

// Clients that pipeline anything, hang up while they wait, and budgets that come, change and go:
// every request is answered once and in order, and /a never gets more than its budget.
func TestTenant_Chaos(t *testing.T) {
	t.Parallel()
	const clients, requests, perSecond = 12, 150, 50
	for seed := range exhaustive.Or[uint64](3, 10) {
		bubble(t, ticks, func(t *testing.T, dial func() *raw) {
			admin := connected(dial)
			for _, path := range []string{"/a", "/b"} {
				admin.call(1, proto.OpCreate, create{path: path})
			}
			admin.budget("/a", perSecond, 0)
			var mu sync.Mutex
			var served []time.Time // operations on /a
			var g sync.WaitGroup
			for i := range clients {
				c, chance := connected(dial), rand.New(rand.NewPCG(seed, uint64(i)))
				leaves := requests
				if i%4 == 0 {
					leaves = chance.IntN(requests)
				}
				ofA := make([]int, requests)
				sent := make([][]byte, requests)
				for xid := range sent {
					path, n := []string{"/a", "/b"}[chance.IntN(2)], 1
					op, body := proto.OpExists, record(&proto.PathWatchRequest{Path: path})
					switch chance.IntN(4) {
					case 0:
						op, body = proto.OpSetData, &proto.SetDataRequest{Path: path, Data: make([]byte, chance.IntN(100)), Version: -1}
					case 1:
						n = 1 + chance.IntN(60)
						op, body = proto.OpMulti, &proto.MultiRequest{Ops: append(checks(path, n).Ops, checks("/b", 3).Ops...)}
					}
					if path == "/a" {
						ofA[xid] = min(n, perSecond)
					}
					sent[xid] = encodeRequest(int32(xid), op, body)
				}
				g.Go(func() { // ends with the connection, or its last request
					for at := 0; at < len(sent); {
						n := min(1+chance.IntN(20), len(sent)-at)
						c.burst(sent[at : at+n]...)
						for range n {
							if at == leaves {
								_ = c.nc.Close()
								return
							}
							h, _ := decodeReply(c.recv())
							if h.Xid != int32(at) || h.Err != proto.OK && h.Err != proto.ErrThrottledOp {
								t.Errorf("%+v instead of a reply to %d", h, at)
							}
							if h.Err == proto.OK {
								mu.Lock()
								served = append(served, slices.Repeat([]time.Time{time.Now()}, ofA[at])...)
								mu.Unlock()
							}
							at++
						}
					}
				})
			}
			done := make(chan struct{})
			go func() { // ends with the clients
				g.Wait()
				close(done)
			}()
			chance := rand.New(rand.NewPCG(seed, clients))
			for ended := false; !ended; {
				admin.budget("/b", int64(chance.IntN(100)), int64(chance.IntN(3)*5000))
				select {
				case <-done:
					ended = true
				case <-time.After(time.Duration(chance.IntN(3000)) * time.Millisecond):
				}
			}
			// Between any two of them are no more than the budget allows.
			least := 0.0
			for i, at := range served {
				spent := float64(i) - perSecond*at.Sub(served[0]).Seconds()
				if least = min(least, spent); spent-least+1 > 2*perSecond { // twice: a multi may wait for /b for a second
					t.Fatalf("%.0f operations more than the budget allows", spent-least+1-perSecond)
				}
			}
		})
	}
}

// Requests for a whole second, and those of a session with a short timeout, get their turn beside
// more clients than the budget can serve.
func TestTenant_Starvation(t *testing.T) {
	bubble(t, ticks, func(t *testing.T, dial func() *raw) {
		connected(dial).budget("/a", 10, 0)
		done := make(chan struct{})
		go func() { // ends by itself
			defer close(done)
			greedy(t, dial, 40, 2*time.Minute, time.Second)
		}()
		time.Sleep(5 * time.Second)
		short := dial()
		if timeout := short.connect(1, 0, nil).TimeoutMs; timeout > 1500 {
			t.Fatalf("the shortest timeout is %d ms", timeout)
		}
		attempts := func(c *raw, checked int) (n int) {
			for code := proto.ErrThrottledOp; code == proto.ErrThrottledOp && n < 50; n++ {
				code, _ = c.timed(proto.OpMulti, checks("/a", checked))
			}
			return n
		}
		for range 3 {
			if n := attempts(short, 1); n > 25 {
				t.Errorf("a session with a timeout of a second is served after %d attempts", n)
			}
		}
		large := connected(dial)
		for range 3 {
			if n := attempts(large, 10); n > 15 {
				t.Errorf("a large request is served after %d attempts", n)
			}
		}
		<-done
	})
}
