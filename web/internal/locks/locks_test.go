package locks

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const guid = "0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f"

// children makes znodes of "NAME@SESSION", created in this order.
func children(names ...string) (all []Znode) {
	for i, text := range names {
		var z Znode
		var session Session
		name, owner, _ := strings.Cut(text, "@")
		_, _ = fmt.Sscan(owner, &session)
		z.Name, z.Session, z.Czxid, z.Ctime = name, session, int64(i+1), int64(1000+i)
		all = append(all, z)
	}
	return all
}

// protect is the name of a protected znode with a GUID of its own.
func protect(n int, rest string) string { return fmt.Sprintf("_c_%08x%s-%s", n, guid[8:], rest) }

func hex(n int, rest string) string { return fmt.Sprintf("%032x%s", n, rest) }

// text shows a lock: KIND LIMIT: SESSION[role]<-PLACES …, a holder with *.
func text(l *Lock) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %d:", l.Kind, l.Limit)
	for _, c := range l.Queue {
		fmt.Fprintf(&b, " %d%s", c.Session, strings.Repeat("*", map[bool]int{true: 1}[c.Holds]))
		if c.Role != "" {
			b.WriteString(c.Role)
		}
		if len(c.Before) > 0 {
			b.WriteString(strings.ReplaceAll(fmt.Sprint(c.Before), " ", ","))
		}
	}
	return b.String()
}

func TestFind_Layouts(t *testing.T) {
	for _, c := range []struct {
		about string
		dirs  []Directory
		want  []string
	}{
		{"Curator's mutex, by number rather than name",
			[]Directory{{"/m", nil, children(protect(9, "lock-0000000001")+"@1", protect(1, "lock-0000000003")+"@3", protect(5, "lock-0000000002")+"@2")}},
			[]string{"/m mutex 0: 1* 2[0] 3[1]"}},
		{"go-zookeeper's lock, whose GUID has no dashes",
			[]Directory{{"/m", nil, children("_c_"+hex(1, "-lock-0000000001@1"), "_c_"+hex(2, "-lock-0000000002@2"))}},
			[]string{"/m mutex 0: 1* 2[0]"}},
		{"numbers after 2147483647", []Directory{{"/m", nil, children("lock--2147483648@2", "lock-2147483647@1")}}, []string{"/m mutex 0: 1* 2[0]"}},
		{"kazoo's lock and other children",
			[]Directory{{"/k", nil, children(hex(1, "__lock__0000000007@7"), "config@0", hex(2, "__lock__0000000008@8"))}}, []string{"/k mutex 0: 7* 8[0]"}},
		{"Curator's read/write lock",
			[]Directory{{"/rw", nil, children(protect(1, "__READ__0000000000@1"), protect(2, "__READ__0000000001@2"), protect(3, "__WRIT__0000000002@3"),
				protect(4, "__READ__0000000003@4"), protect(5, "__WRIT__0000000004@5"), protect(6, "__WRIT__0000000005@6"))}},
			[]string{"/rw read/write 0: 1*read 2*read 3write[0,1] 4read[2] 5write[3] 6write[4]"}},
		{"kazoo's read/write lock, whose writers are named as a lock's contenders",
			[]Directory{{"/rw", nil, children(hex(1, "__lock__0000000000@1"), hex(2, "__rlock__0000000001@2"))}}, []string{"/rw read/write 0: 1*write 2read[0]"}},
		{"Curator's semaphore: the first request waits with a lease of its own",
			[]Directory{{"/s/leases", nil, children(protect(1, "lease-0000000000@1"), protect(2, "lease-0000000001@2"))},
				{"/s/locks", nil, func() []Znode {
					z := children(protect(3, "lock-0000000002@3"), protect(4, "lock-0000000003@4"))
					z[0].Czxid, z[1].Czxid = 10, 11
					return z
				}()}},
			[]string{"/s semaphore 0: 1*lease 2*lease 3 4[2]"}},
		{"kazoo's semaphore",
			[]Directory{{"/s", []byte("2"), children(hex(9, "@1"), hex(2, "@2"))}, {"/s-__lock__", nil, children(hex(3, "__lock__0000000002@3"), hex(4, "__lock__0000000003@4"))}},
			[]string{"/s semaphore 2: 1*lease 2*lease 3[0,1] 4[2]"}},
		{"Curator's latch", []Directory{{"/e", nil, children(protect(1, "latch-0000000001@1"), protect(2, "latch-0000000002@2"))}}, []string{"/e election 0: 1* 2[0]"}},
		{"ZooKeeper's recipes, Solr, ClickHouse",
			[]Directory{{"/a", nil, children("n_0000000001@1")}, {"/b", nil, children("x-0x100f2a3b4c5d6e7f-0000000001@1")},
				{"/c", nil, children("72057598332764161-core_node3-n_0000000001@1")}, {"/d", nil, children("leader_election-0000000001@1")}},
			[]string{"/a election 0: 1*", "/b mutex 0: 1*", "/c election 0: 1*", "/d election 0: 1*"}},
		{"what is no lock", []Directory{
			{"/group", nil, children("member_0000000001@1", "member_0000000002@2")}, {"/queue", nil, children("queue-0000000001@0")},
			{"/party", nil, children(hex(1, "__party__@1"))}, {"/number", []byte("3"), children("a@1")}, {"/", nil, children("lock-0000000001@1")},
			{"/deserted", nil, children("lock-0000000001@0")}},
			nil},
	} {
		var got []string
		for _, l := range Find(c.dirs) {
			got = append(got, l.Path+" "+text(&l))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%q, want\n%q", c.about, got, c.want)
		}
	}
}

// TestFind_PendingLease: Curator's request creates its lease before it counts all leases.
func TestFind_PendingLease(t *testing.T) {
	leases := children(protect(1, "lease-0000000000@1"), protect(2, "lease-0000000001@2"), protect(3, "lease-0000000002@3"))
	leases[2].Czxid = 20
	queue := children(protect(4, "lock-0000000007@3"), protect(5, "lock-0000000008@4"))
	queue[0].Czxid, queue[1].Czxid = 10, 11
	all := Find([]Directory{{"/s/leases", nil, leases}, {"/s/locks", nil, queue}})
	if got := text(&all[0]); got != "semaphore 2: 1*lease 2*lease 3[0,1] 4[2]" || !all[0].Queue[2].Any {
		t.Errorf("%s, any %v", got, all[0].Queue[2].Any)
	}
}

func TestFind_Suspects(t *testing.T) {
	all := Find([]Directory{{"/m", nil, children(protect(1, "lock-0000000001@1"), protect(1, "lock-0000000002@1"),
		protect(2, "lock-0000000003@0"), protect(3, "lock-0000000004@5"))}})
	want := []string{sameSession, sameCreate, notEphemeral, ""}
	for i, c := range all[0].Queue {
		if c.Suspect != want[i] || c.Repeated != (i == 1) {
			t.Errorf("place %d: %q, repeated %v; want %q", i, c.Suspect, c.Repeated, want[i])
		}
	}
}

func TestCandidate(t *testing.T) {
	for path, want := range map[string]string{
		"/a/b/lock-0000000001": "/a/b", "/s/" + hex(1, ""): "/s", "/lock-0000000001": "", "/a/member_0000000001": "", "/a/b": "",
	} {
		dir, ok := Candidate(path)
		if ok != (want != "") || ok && dir != want {
			t.Errorf("%s: %q, %v", path, dir, ok)
		}
	}
}

func TestShortText(t *testing.T) {
	for data, want := range map[string]string{
		"10.0.0.1": "10.0.0.1", " host\n": "host", "\xff\xfe": "", "a\x00b": "", strings.Repeat("ü", 100): strings.Repeat("ü", 64),
		"x" + strings.Repeat("ü", 100): "x" + strings.Repeat("ü", 63),
	} {
		if got := shortText([]byte(data)); got != want {
			t.Errorf("%q: %q, want %q", data, got, want)
		}
	}
}

// mutex is a mutex whose queue are these sessions.
func mutex(path string, sessions ...Session) Directory {
	d := Directory{Path: path}
	for i, s := range sessions {
		d.Children = append(d.Children, Znode{Name: protect(i, fmt.Sprintf("lock-%010d", i)), Session: s, Czxid: int64(i)})
	}
	return d
}

// latch is an election whose queue are these sessions.
func latch(path string, sessions ...Session) Directory {
	d := mutex(path, sessions...)
	for i := range d.Children {
		d.Children[i].Name = protect(i, fmt.Sprintf("latch-%010d", i))
	}
	return d
}

func TestCycles(t *testing.T) {
	lease := func(path string, limit int, holders []Session, waiters ...Session) []Directory {
		d := Directory{Path: path, Data: fmt.Append(nil, limit)}
		for i, s := range holders {
			d.Children = append(d.Children, Znode{Name: hex(i, ""), Session: s, Czxid: int64(i)})
		}
		m := Directory{Path: path + kazooLocks}
		for i, s := range waiters {
			m.Children = append(m.Children, Znode{Name: hex(i, fmt.Sprintf("__lock__%010d", i)), Session: s})
		}
		return []Directory{d, m}
	}
	for _, c := range []struct {
		about string
		dirs  []Directory
		want  string
	}{
		{"two locks, taken in two orders", []Directory{mutex("/a", 1, 2), mutex("/b", 2, 1)}, "[1 2]"},
		{"three", []Directory{mutex("/a", 1, 3), mutex("/b", 2, 1), mutex("/c", 3, 2)}, "[1 2 3]"},
		{"a place in the middle of a queue", []Directory{mutex("/a", 9, 1, 2), mutex("/b", 2, 1)}, "[1 2]"},
		{"one that only waits for a cycle is not in it", []Directory{mutex("/a", 1, 2), mutex("/b", 2, 1, 3)}, "[1 2]"},
		{"one order", []Directory{mutex("/a", 1, 2), mutex("/b", 1, 2)}, ""},
		{"threads of one session", []Directory{mutex("/a", 1, 2, 1)}, ""},
		{"threads of two sessions", []Directory{mutex("/a", 1, 2, 1, 2, 1)}, ""},
		{"behind the second place of a session", []Directory{mutex("/a", 1, 2, 1, 3), mutex("/b", 3, 2)}, "[2 3]"},
		{"a lease can come from another holder", append(lease("/s", 2, []Session{1, 2}, 3), mutex("/a", 3, 1)), ""},
		{"no lease can come", append(lease("/s", 2, []Session{1, 2}, 3), mutex("/a", 3, 1, 2)), "[1 3]"},
		{"two leader latches, led by two instances", []Directory{latch("/a", 1, 2), latch("/b", 2, 1)}, ""},
		{"two shards of Solr", []Directory{
			{"/collections/c/leader_elect/shard1/election", nil, children("1-core_node1-n_0000000000@1", "2-core_node2-n_0000000001@2")},
			{"/collections/c/leader_elect/shard2/election", nil, children("2-core_node4-n_0000000000@2", "1-core_node3-n_0000000001@1")}}, ""},
		{"locks beside an election", []Directory{latch("/e", 3, 1), mutex("/a", 1, 2), mutex("/b", 2, 1)}, "[1 2]"},
		{"two loops of a group: the shortest of the least session", []Directory{
			mutex("/a", 1, 2), mutex("/b", 2, 3), mutex("/c", 3, 1), mutex("/d", 3, 2)}, "[1 3 2]"},
	} {
		var got []string
		for _, cycle := range Cycles(Find(c.dirs)) {
			got = append(got, fmt.Sprint(cycle.Sessions))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %q", c.about, got, c.want)
		}
	}
}

// TestCycles_Model compares with a model in which sessions finish one after another: of sessions
// with one place in each lock, those that can never finish wait for a cycle.
func TestCycles_Model(t *testing.T) {
	sessions := rapid.Map(rapid.Int64Range(1, 6), func(n int64) Session { return Session(n) })
	rapid.Check(t, func(rt *rapid.T) {
		var dirs []Directory
		queues := make(map[string][]Session)
		for i := range rapid.IntRange(0, 5).Draw(rt, "locks") {
			path := fmt.Sprintf("/l%d", i)
			queue := rapid.SliceOfNDistinct(sessions, 1, 5, rapid.ID[Session]).Draw(rt, "queue")
			dirs, queues[path] = append(dirs, mutex(path, queue...)), queue
		}
		for ended := true; ended; { // let every session end that holds whatever it wants
			ended = false
			for s := Session(1); s <= 6; s++ {
				stands, waits := false, false
				for _, q := range queues {
					i := slices.Index(q, s)
					stands, waits = stands || i >= 0, waits || i > 0
				}
				if stands && !waits {
					ended = true
					for path, q := range queues {
						queues[path] = slices.DeleteFunc(q, func(x Session) bool { return x == s })
					}
				}
			}
		}
		stuck := slices.ContainsFunc(dirs, func(d Directory) bool { return len(queues[d.Path]) > 0 })
		all := Find(dirs)
		cycles := Cycles(all)
		if stuck != (len(cycles) > 0) {
			rt.Fatalf("stuck %v, cycles %v of %v", queues, cycles, dirs)
		}
		for i := range all { // L1, L2
			for j, c := range all[i].Queue {
				if c.Holds != (j == 0) || j > 0 && (len(c.Before) == 0 || slices.Max(c.Before) >= j) {
					rt.Fatalf("place %d of %s", j, text(&all[i]))
				}
			}
		}
		waits := Waits(all)
		for _, c := range cycles { // L3
			for i, w := range c.Waits {
				if w.From != c.Sessions[i] || w.To != c.Sessions[(i+1)%len(c.Sessions)] || !slices.Contains(waits, w) {
					rt.Fatalf("wait %d of %v is not of a loop of %v", i, c, waits)
				}
			}
			if len(c.Waits) != len(c.Sessions) || len(slices.Compact(slices.Sorted(slices.Values(c.Sessions)))) != len(c.Sessions) {
				rt.Fatalf("%v is not one loop", c)
			}
		}
	})
}

// FuzzFind: any children must neither panic nor break L2.
func FuzzFind(f *testing.F) {
	f.Add("/a", "2", "lock-0000000001@1\nlock-0000000002@2")
	f.Add("/s/leases", "", protect(1, "lease-0000000001@1")+"\n__rlock__0000000001@2")
	f.Fuzz(func(t *testing.T, path, data, names string) {
		d := Directory{"/" + path, []byte(data), children(strings.Split(names, "\n")...)}
		all := Find([]Directory{d, {d.Path + kazooLocks, nil, d.Children}, {d.Path + "/locks", nil, d.Children}})
		Cycles(all)
		Waits(all)
		for i := range all {
			for j, c := range all[i].Queue {
				if len(c.Before) > 0 && slices.Max(c.Before) >= j {
					t.Fatalf("place %d of %s waits for a later place", j, text(&all[i]))
				}
			}
		}
	})
}

// TestFind_Real reads what kazoo 2 and Curator 5.9 made on a server: each lock was requested by
// clients 1, 2, 3, 4, in this order.
func TestFind_Real(t *testing.T) {
	for name, want := range map[string][]string{
		"kazoo": {
			"/fx/election mutex 0: 1* 2[0] e0", "/fx/lock mutex 0: 1* 2[0] a",
			"/fx/rw read/write 0: 1*read 2*read 3write[0,1] 4read[2] r0", "/fx/sem semaphore 2: 1*lease 2*lease 3[0,1] 4[2] s0",
		},
		"curator": {
			"/cu/latch election 0: 1* 2[0] 3[1] node-1", "/cu/lock mutex 0: 1* 2[0] 3[1] 192.0.2.7",
			"/cu/rw read/write 0: 1*read 2*read 3write[0,1] 4read[2] 192.0.2.7", "/cu/selector mutex 0: 1* 2[0] pick-1",
			"/cu/sem semaphore 2: 1*lease 2*lease 3[0,1] 4[2] s1", "/cu/semutex semaphore 1: 1*lease 2[0] 192.0.2.7",
		},
	} {
		content, err := os.ReadFile(filepath.Join("testdata", name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var dirs []Directory
		if err := json.Unmarshal(content, &dirs); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range Find(dirs) {
			got = append(got, l.Path+" "+text(&l)+" "+l.Queue[0].ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
