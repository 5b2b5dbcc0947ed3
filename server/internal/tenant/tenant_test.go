package tenant_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/internal/tenant"
)

var begin = time.Unix(0, 0)

// set sets the budget of a subtree or of an identity, at least one of which is not bounded by 0.
func set(t rapid.TB, b *tenant.Budgets, target string, ops, bytes int64, now time.Time) {
	t.Helper()
	text := proto.Quota{proto.QuotaOps: ops, proto.QuotaByteRate: bytes}.String()
	if err := b.Set(proto.QuotaRoot+target+proto.QuotaBudget, []byte(text), true, now); err != nil {
		t.Fatal(err)
	}
}

// take charges a request on paths, and says how it ended.
func take(b *tenant.Budgets, c tenant.Cost, now time.Time, most time.Duration, paths ...string) (time.Duration, bool) {
	var bill tenant.Bill
	for _, path := range paths {
		b.ChargePath(&bill, path, c)
	}
	return bill.Take(now, tenant.Claim{Most: most})
}

// exhaust takes all operations of a path's budget, and reports whether there was one.
func exhaust(b *tenant.Budgets, path string, now time.Time) bool {
	take(b, tenant.Cost{Ops: 1e6}, now, math.MaxInt64, path)
	_, ok := take(b, tenant.Cost{Ops: 1}, now, 0, path)
	return !ok
}

func TestBudgets_NearestSubtree(t *testing.T) {
	for path, with := range map[string][]string{
		"/a": {"/a", "/a/x", "/a/x/y/z"}, "/a/b": {"/a/b", "/a/b/c/d/e/f/g/h"},
		"": {"/", "", "/ab", "/b/a", "/zookeeper/quota/a", "/zookeeper"},
	} {
		for _, p := range with {
			var b tenant.Budgets
			set(t, &b, "/a", 5, 0, begin)
			set(t, &b, "/a/b", 5, 0, begin)
			set(t, &b, "/zookeeper", 5, 0, begin)
			if exhaust(&b, p, begin) != (path != "") {
				t.Errorf("%q has a budget: %v", p, path == "")
			}
			for _, other := range []string{"/a", "/a/b"} {
				if _, ok := take(&b, tenant.Cost{Ops: 1}, begin, 0, other); ok == (other == path) {
					t.Errorf("after requests for %q, %q has tokens: %v", p, other, ok)
				}
			}
		}
	}
}

func TestBudgets_Identities(t *testing.T) {
	var b tenant.Budgets
	set(t, &b, "/zookeeper/identities/x509:CN=a%2Fb,O=c:d", 5, 0, begin)
	id := proto.ID{Scheme: "x509", ID: "CN=a/b,O=c:d"}
	for _, who := range [][]proto.ID{{{Scheme: "ip", ID: "1"}, id}, {{Scheme: "sasl", ID: id.ID}}, nil} {
		var bill tenant.Bill
		b.ChargeIDs(&bill, who, tenant.Cost{Ops: 6})
		bill.Take(begin, tenant.Claim{})
		if _, ok := bill.Take(begin, tenant.Claim{}); ok == (len(who) == 2) {
			t.Errorf("%v is charged: %v", who, !ok)
		}
	}
}

// Budgets are the znodes with their name below the znode of quotas, except those for what is free.
func TestBudgets_Znodes(t *testing.T) {
	for path, want := range map[string]bool{
		"/zookeeper/quota/a/zookeeper_budget": true, "/zookeeper/quota/a/b/zookeeper_budget": true, "/zookeeper/quota/zookeeperx/zookeeper_budget": true,
		"/zookeeper/quota/zookeeper_budget": false, "/zookeeper/quota/a/zookeeper_budgets": false, "/zookeeper/quota/a": false,
		"/zookeeper/quotas/zookeeper_budget": false, "/zookeeper/quota/zookeeper/zookeeper_budget": false, "/zookeeper/quota/zookeeper/a/zookeeper_budget": false,
		"/zookeeper/quota/zookeeper/identities/ip:1/zookeeper_budget": true,
	} {
		var b tenant.Budgets
		if err := b.Set(path, []byte("opsPerSecond=1"), true, begin); err != nil || b.Empty() == want {
			t.Errorf("%s is a budget: %v, %v", path, !b.Empty(), err)
		}
	}
	var b tenant.Budgets
	for _, subtree := range []string{"/a/long/path", "/b", "/c/d"} { // the longest one comes first
		set(t, &b, subtree, 5, 0, begin)
	}
	for _, path := range []string{"/a/long/path", "/a/long/path/x", "/b", "/b/xyz", "/c/d", "/c/d/and/many/more/names"} {
		if !exhaust(&b, path, begin) {
			t.Errorf("%s has no budget", path)
		}
	}
	for _, path := range []string{"/a/long/paths", "/a/long", "/a", "/bc", "/c", "/c/de", "/c/e/f/g/h/i/j/k", "b", "no/path", "no/path/that/is/long"} {
		if exhaust(&b, path, begin) {
			t.Errorf("%s has a budget", path)
		}
	}
}

// A request waits for as long as it may, and no longer, also before its last attempt, and one that
// costs nothing does not wait.
func TestBudgets_Most(t *testing.T) {
	for _, tc := range []struct {
		c    tenant.Cost
		most time.Duration
		wait time.Duration
		ok   bool
	}{
		{tenant.Cost{Ops: 5}, 500 * time.Millisecond, 500 * time.Millisecond, true}, {tenant.Cost{Ops: 5}, 500*time.Millisecond - 1, 500*time.Millisecond - 1, false},
		{tenant.Cost{Bytes: 50}, 500 * time.Millisecond, 500 * time.Millisecond, true}, {tenant.Cost{Bytes: 50}, 500*time.Millisecond - 1, 500*time.Millisecond - 1, false},
		{tenant.Cost{Ops: 1, Bytes: 50}, time.Second, 500 * time.Millisecond, true}, {tenant.Cost{Ops: 5, Bytes: 10}, time.Second, 500 * time.Millisecond, true},
		{tenant.Cost{}, 0, 0, true},
	} {
		var b tenant.Budgets
		set(t, &b, "/a", 10, 100, begin)
		take(&b, tenant.Cost{Ops: 10, Bytes: 100}, begin, 0, "/a")
		if wait, ok := take(&b, tc.c, begin, tc.most, "/a"); wait != tc.wait || ok != tc.ok {
			t.Errorf("%+v, at most %v: waits %v, %v", tc.c, tc.most, wait, ok)
		}
	}
}

// A budget ends with its znode or with its numbers, and a malformed one is reported.
func TestBudgets_End(t *testing.T) {
	var b tenant.Budgets
	for _, end := range []func() error{
		func() error { return b.Set("/zookeeper/quota/a/zookeeper_budget", nil, false, begin) },
		func() error {
			return b.Set("/zookeeper/quota/a/zookeeper_budget", []byte("opsPerSecond=0"), true, begin)
		},
		func() error {
			long := "opsPerSecond=" + strings.Repeat("many", 1e5)
			err := b.Set("/zookeeper/quota/a/zookeeper_budget", []byte(long), true, begin)
			if err == nil || len(err.Error()) > 1000 {
				t.Errorf("a malformed budget is accepted, or fills the log: %.1000v", err)
			}
			return nil
		},
	} {
		set(t, &b, "/a", 1, -1, begin)
		if b.Empty() || !exhaust(&b, "/a", begin) {
			t.Fatal("no budget")
		}
		if err := end(); err != nil {
			t.Error(err)
		}
		if !b.Empty() || exhaust(&b, "/a", begin) {
			t.Error("the budget goes on")
		}
	}
	if err := b.Set("/zookeeper/quota/a/zookeeper_limits", []byte("opsPerSecond=1"), true, begin); err != nil || !b.Empty() {
		t.Errorf("other znodes count: %v", err)
	}
}

// What was taken stays taken when the numbers change, except of what is no longer bounded.
func TestBudgets_Change(t *testing.T) {
	var b tenant.Budgets
	set(t, &b, "/a", 10, 100, begin)
	for range 3 {
		take(&b, tenant.Cost{Ops: 30, Bytes: 300}, begin, time.Minute, "/a") // as 10 and 100
	}
	set(t, &b, "/a", 20, 0, begin.Add(time.Second)) // 20 operations are missing
	set(t, &b, "/a", 20, 100, begin.Add(time.Second))
	if wait, _ := take(&b, tenant.Cost{Ops: 1, Bytes: 100}, begin.Add(time.Second), time.Minute, "/a"); wait != 50*time.Millisecond {
		t.Errorf("waits %v", wait)
	}
}

// Operations and bytes are bounded each alone, and what was taken of either stays taken.
func TestBudgets_OpsAndBytes(t *testing.T) {
	for _, tc := range []struct {
		ops, bytes int64 // later: of the first second all is missing
		c          tenant.Cost
		wait       time.Duration
	}{
		{10, 0, tenant.Cost{Ops: 10, Bytes: 1e6}, time.Second}, {0, 100, tenant.Cost{Ops: 1e6, Bytes: 100}, time.Second},
		{20, 100, tenant.Cost{Ops: 20}, 500 * time.Millisecond}, {10, 200, tenant.Cost{Bytes: 200}, 500 * time.Millisecond},
	} {
		var b tenant.Budgets
		set(t, &b, "/a", 10, 100, begin)
		take(&b, tenant.Cost{Ops: 10, Bytes: 100}, begin, 0, "/a")
		set(t, &b, "/a", tc.ops, tc.bytes, begin)
		if wait, ok := take(&b, tc.c, begin, time.Minute, "/a"); wait != tc.wait || !ok {
			t.Errorf("%+v: waits %v, %v", tc, wait, ok)
		}
	}
	var b tenant.Budgets
	set(t, &b, "/a", 0, 100, begin)
	set(t, &b, "/a", 10, 100, begin) // operations are bounded anew
	take(&b, tenant.Cost{Ops: 10}, begin, 0, "/a")
	set(t, &b, "/a", 0, 100, begin)
	set(t, &b, "/a", 10, 100, begin)
	if wait, _ := take(&b, tenant.Cost{Ops: 10}, begin, time.Minute, "/a"); wait != 0 {
		t.Errorf("what was missing of operations that were not bounded is missing: %v", wait)
	}
	set(t, &b, "/b", 1, 0, begin)
	take(&b, tenant.Cost{Ops: 1}, begin, 0, "/b")
	set(t, &b, "/c", 10, 100, begin)
	if _, ok := take(&b, tenant.Cost{Ops: 1, Bytes: 60}, begin, 0, "/c", "/b"); ok {
		t.Error("an empty bucket has tokens")
	}
	if wait, _ := take(&b, tenant.Cost{Ops: 10, Bytes: 100}, begin, time.Minute, "/c"); wait != 0 {
		t.Errorf("a refused request keeps its tokens for %v", wait)
	}
	later := begin.Add(500 * time.Millisecond)
	set(t, &b, "/c", 20, 200, later) // half has come at the rate of before
	for _, c := range []tenant.Cost{{Ops: 20}, {Bytes: 200}} {
		var bill tenant.Bill
		b.ChargePath(&bill, "/c", c)
		if _, ok := bill.Take(later, tenant.Claim{Most: 250*time.Millisecond - 1}); ok {
			t.Errorf("%+v is there too early", c)
		}
	}
	if wait, _ := take(&b, tenant.Cost{Ops: 20, Bytes: 200}, later, time.Minute, "/c"); wait != 250*time.Millisecond {
		t.Errorf("after half a second the tokens of a second take %v", wait)
	}
}

// A bill, short or long, charges each budget what its own paths cost.
func TestBill_Sums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const n = 12
		var b tenant.Budgets
		var bill tenant.Bill
		var ops, bytes [n]int
		for i := range n {
			set(t, &b, fmt.Sprint("/", i), 1000, 1000, begin)
		}
		for range rapid.IntRange(1, 30).Draw(t, "charges") {
			i := rapid.IntRange(0, n-1).Draw(t, "budget")
			c := tenant.Cost{Ops: float64(rapid.IntRange(0, 30).Draw(t, "ops")), Bytes: float64(rapid.IntRange(0, 30).Draw(t, "bytes"))}
			b.ChargePath(&bill, fmt.Sprint("/", i, "/x"), c)
			ops[i], bytes[i] = ops[i]+int(c.Ops), bytes[i]+int(c.Bytes)
		}
		if wait, ok := bill.Take(begin, tenant.Claim{}); wait != 0 || !ok {
			t.Fatal(wait, ok)
		}
		for i := range n {
			want := time.Duration(max(ops[i], bytes[i])) * time.Millisecond
			if wait, _ := take(&b, tenant.Cost{Ops: 1000, Bytes: 1000}, begin, time.Minute, fmt.Sprint("/", i)); (wait - want).Abs() > time.Microsecond {
				t.Fatalf("budget %d waits %v, want %v", i, wait, want)
			}
		}
	})
}

// A multi over many subtrees waits for all of them, or takes nothing, and pays in sum.
func TestBill_ManySubtrees(t *testing.T) {
	var b tenant.Budgets
	var paths []string
	for i := range 20 {
		path := fmt.Sprint("/", i)
		set(t, &b, path, 4, 0, begin)
		paths = append(paths, path, path+"/x", path)
	}
	all := append(paths, paths...) // 6 operations for each, which count as 4
	if wait, ok := take(&b, tenant.Cost{Ops: 1}, begin, 0, all...); wait != 0 || !ok {
		t.Fatalf("full buckets: wait %v, %v", wait, ok)
	}
	if _, ok := take(&b, tenant.Cost{Ops: 1}, begin, time.Second-1, all...); ok {
		t.Error("an empty bucket is full within a second")
	}
	if wait, ok := take(&b, tenant.Cost{Ops: 1}, begin, 2*time.Second, all...); wait != time.Second || !ok {
		t.Errorf("after a refusal: wait %v, %v", wait, ok)
	}
}

// One request, however large, uses up no more than a second; after it others wait for that long. A
// refused one gives back no more than that.
func TestBudgets_LargeRequest(t *testing.T) {
	var b tenant.Budgets
	set(t, &b, "/a", 10, 1000, begin)
	set(t, &b, "/b", 1, 0, begin)
	large := tenant.Cost{Ops: 1e4, Bytes: 1e6}
	for _, step := range []struct {
		cost  tenant.Cost
		wait  time.Duration
		ok    bool
		paths []string
	}{
		{tenant.Cost{Ops: 15}, 0, true, []string{"/a"}}, {large, 0, true, []string{"/b"}},
		{large, time.Second, true, []string{"/a"}}, {large, 1500 * time.Millisecond, false, []string{"/b", "/a"}},
		{tenant.Cost{Ops: 1}, time.Second, true, []string{"/b"}},
		{tenant.Cost{Ops: 1, Bytes: 1}, 1100 * time.Millisecond, true, []string{"/a"}},
	} {
		if wait, ok := take(&b, step.cost, begin, 1500*time.Millisecond, step.paths...); wait != step.wait || ok != step.ok {
			t.Errorf("%v on %v waits %v, %v, want %v, %v", step.cost, step.paths, wait, ok, step.wait, step.ok)
		}
	}
}

// B1, B2 for requests that come to two budgets in any order: in no second more begins than the
// budget and what it holds, a refused request takes nothing, and a request is
// refused only if it would wait longer than it may.
func TestBill_Model(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const most = time.Second
		var b tenant.Budgets
		rates := []float64{float64(rapid.IntRange(1, 10).Draw(t, "rate")), float64(rapid.IntRange(1, 10).Draw(t, "other rate"))}
		set(t, &b, "/0", int64(rates[0]), 0, begin)
		set(t, &b, "/1", int64(rates[1]), 0, begin)
		free := []time.Time{begin, begin} // when each bucket is full, by the requests that were accepted
		now := begin
		for range 60 {
			now = now.Add(time.Duration(rapid.IntRange(0, 400).Draw(t, "ms")) * time.Millisecond)
			costs := [2]int{rapid.IntRange(0, 15).Draw(t, "cost"), rapid.IntRange(0, 3).Draw(t, "other cost")}
			var bill tenant.Bill
			want := time.Duration(0)
			for i, n := range costs {
				b.ChargePath(&bill, fmt.Sprint("/", i), tenant.Cost{Ops: float64(n)})
				missing := max(0, free[i].Sub(now).Seconds()) * rates[i]
				want = max(want, time.Duration((missing+min(float64(n), rates[i])-rates[i])/rates[i]*float64(time.Second)))
			}
			wait, ok := bill.Take(now, tenant.Claim{Most: most})
			const rounding = time.Microsecond
			switch {
			case ok && (wait-want).Abs() > rounding:
				t.Fatalf("waits %v, want %v", wait, want)
			case ok && wait > most, !ok && want < most-rounding:
				t.Fatalf("accepted: %v, would wait %v", ok, want)
			case !ok:
				continue
			}
			for i, n := range costs {
				from := now
				if free[i].After(now) {
					from = free[i]
				}
				free[i] = from.Add(time.Duration(min(1, float64(n)/rates[i]) * float64(time.Second)))
			}
		}
	})
}

// Clients that need more room than others of their tenant, or can wait for a shorter time, are
// served in turn with so many small requests that all of the next second is always taken. The small
// ones get the rest.
func TestBill_Starvation(t *testing.T) {
	const perSecond, length = 20, 60 * time.Second
	type client struct {
		cost      float64
		most      time.Duration
		since, at time.Time // when its request came, and when it is looked at next
		inVain    time.Time // when its first request in a row came that was refused
		served    int
	}
	for name, others := range map[string][]client{
		"large":          {{cost: perSecond, most: time.Second}},
		"short":          {{cost: 1, most: time.Second / 5}},
		"large and soon": {{cost: perSecond, most: time.Second / 5}},
		"several": {
			{cost: perSecond, most: time.Second}, {cost: perSecond, most: time.Second}, {cost: 1, most: time.Second / 5}, {cost: 1, most: time.Second / 5},
		},
	} {
		var b tenant.Budgets
		set(t, &b, "/a", perSecond, 0, begin)
		clients := append(slices.Repeat([]client{{cost: 1, most: time.Second}}, 3*perSecond), others...)
		for i := range clients {
			clients[i].at = begin.Add(time.Duration(i) * time.Millisecond)
			clients[i].since, clients[i].inVain = clients[i].at, clients[i].at
		}
		for {
			next := 0
			for i := range clients {
				if clients[i].at.Before(clients[next].at) {
					next = i
				}
			}
			c := &clients[next]
			if c.at.Sub(begin) > length {
				break
			}
			var bill tenant.Bill
			b.ChargePath(&bill, "/a", tenant.Cost{Ops: c.cost})
			waited := c.at.Sub(c.since)
			wait, ok := bill.Take(c.at, tenant.Claim{Client: uint64(1 + next), Since: c.inVain, Most: c.most, Waited: waited})
			if !ok && wait > 0 {
				c.at = c.at.Add(wait)
				continue
			}
			c.at = c.at.Add(wait + time.Millisecond)
			if c.since = c.at; ok {
				c.inVain = c.at
				c.served++
			}
		}
		least, small := len(clients), 0
		for i, c := range clients {
			if i < 3*perSecond {
				small += c.served
			} else {
				least = min(least, c.served)
			}
		}
		if least < 5 || small < int(length.Seconds())*perSecond/4 {
			t.Errorf("%s: in %v the client that was served least often was so %d times, and %d small requests were", name, length, least, small)
		}
	}
}
