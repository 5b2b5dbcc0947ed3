package datatree

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/internal/serverlist"
	"github.com/gozkd/gozkd/internal/zkfiles"
	"github.com/gozkd/gozkd/proto"
)

// largeTree has enough znodes for several full batches, among them children below children, ACLs,
// ephemerals, and znodes that are collected.
func largeTree(t testing.TB) *Tree {
	t.Helper()
	tree := fuzzTree(t)
	create := func(path string, mode proto.CreateMode, ttl int64, acl []proto.ACL, data []byte) {
		op := proto.OpCreate
		if ttl > 0 {
			op = proto.OpCreateTTL
		}
		body := (&proto.CreateRequest{Path: path, Data: data, ACL: acl, Mode: mode, TTL: ttl}).Append(nil, op)
		r := Request{Op: op, Session: fuzzSession, ConnEpoch: 1, Flags: FlagSkipACL, Body: body}
		if res, _ := tree.Apply(Header{tree.LastZxid() + 1, 1}, &r); res.Err != proto.OK {
			t.Fatalf("create %s: %v", path, res.Err)
		}
	}
	for i := range 12 {
		parent := fmt.Sprintf("/p%02d", i)
		create(parent, 0, 0, proto.OpenACL(), nil)
		for k := range batchRecords {
			path := fmt.Sprintf("%s/n%04d", parent, k)
			switch k % 8 {
			case 0:
				create(path, 1, 0, proto.OpenACL(), []byte("ephemeral"))
			case 1:
				create(path, 5, 1000, proto.OpenACL(), nil)
			case 2:
				create(path, 0, 0, []proto.ACL{{Perms: proto.Perms(1 + i), ID: proto.ID{Scheme: "ip", ID: "10.0.0.0/8"}}}, []byte{})
			case 3:
				create(path, 0, 0, proto.OpenACL(), make([]byte, 2*largeBytes))
			case 4:
				create(path, 0, 0, proto.ReadACL(), []byte("above"))
				create(path+"/below", 0, 0, proto.ReadACL(), []byte("below"))
			default:
				create(path, 0, 0, proto.OpenACL(), []byte(path))
			}
		}
	}
	create("/zookeeper/quota/p05", 0, 0, proto.OpenACL(), nil)
	create("/zookeeper/quota/p05/zookeeper_limits", 0, 0, proto.OpenACL(), []byte("count=100000,bytes=-1"))
	create("/zookeeper/quota/p05/zookeeper_stats", 0, 0, proto.OpenACL(), nil)
	return tree
}

// TestRestore_Large restores more than a batch.
func TestRestore_Large(t *testing.T) {
	tree, s := largeTree(t), make(store)
	s.merge(t, tree.Capture())
	s.verify(t, tree)
	batches := slices.Collect(Decode(s.sorted)) // at once, as if Build were slow
	for i, b := range batches[:len(batches)-1] {
		if len(b.others)+len(b.znodes) != batchRecords {
			t.Errorf("batch %d has %d records that are no znodes, and %d znodes", i, len(b.others), len(b.znodes))
		}
	}
	if zxid, digest, err := SavedDigest(s.sorted); err != nil || zxid != tree.LastZxid() || digest != tree.Digest() {
		t.Errorf("saved are %v and %#x: %v", zxid, digest, err)
	}
	if restored, err := Build(Options{}, slices.Values(batches)); err != nil || restored.Digest() != tree.Digest() {
		t.Errorf("restored from %d batches: %v", len(batches), err)
	}
	// Restore needs parents before their children, but no other order of znodes. Other records may
	// come between them.
	keys := slices.SortedFunc(maps.Keys(s), func(a, b string) int {
		return slices.Compare([]int{rank(a), strings.Count(a, "/"), len(a)}, []int{rank(b), strings.Count(b, "/"), len(b)})
	})
	at := slices.IndexFunc(keys, func(key string) bool { return key[0] == sessionPrefix })
	const extra = 99 // a session without znodes
	key := string(appendSessionKey(nil, extra))
	for _, move := range []int{len(keys) / 2, len(keys)} {
		moved := slices.Insert(slices.Clone(keys), move, key)
		s[key] = appendSession(nil, &sessionRecord{id: extra, connEpoch: 1})
		s.agree()
		if n, most := len(slices.Collect(Decode(s.inOrder(moved)))), len(batches)+2; n > most {
			t.Errorf("%d batches, want at most %d", n, most)
		}
		restored, err := Restore(Options{}, s.inOrder(moved))
		if err != nil {
			t.Fatal(err)
		}
		if err := restored.Check(); err != nil {
			t.Error(err)
		}
		if want := restored.meta(); tree.NumZnodes() != restored.NumZnodes() || want.digest != tree.Digest()+restored.sessions[extra].rec.digest {
			t.Errorf("restored %+v, want %+v and a session", want, tree.meta())
		}
	}
	// An ephemeral before its session is refused.
	late := append(slices.Delete(slices.Clone(keys), at, at+1), keys[at])
	if _, err := Restore(Options{}, s.inOrder(late)); err == nil || !strings.Contains(err.Error(), "its owner, session") {
		t.Errorf("the session comes last: %v", err)
	}
}

// rank orders the kinds of keys.
func rank(key string) int { return strings.IndexByte("mpsz", key[0]) }

// inOrder yields the records in the order of keys.
func (s store) inOrder(keys []string) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		for _, key := range keys {
			k, v := []byte(key), slices.Clone(s[key])
			more := yield(k, v)
			clear(k) // valid during the step only
			clear(v)
			if !more {
				return
			}
		}
	}
}

// TestRestore_NamesTheFirst damages two znodes, one so that it cannot be decoded, the other so that
// it cannot be added to the tree. The error names the first.
func TestRestore_NamesTheFirst(t *testing.T) {
	good := make(store)
	good.merge(t, largeTree(t).Capture())
	keys := slices.Sorted(maps.Keys(good))
	undecodable := func(s store, keys []string, i int) []string { s[keys[i]] = []byte{0x08}; return keys }
	twice := func(_ store, keys []string, i int) []string { return slices.Insert(keys, i+1, keys[i]) }
	unknown := func(s store, keys []string, i int) []string { return slices.Insert(keys, i, "x") }
	orphan := func(_ store, keys []string, i int) []string {
		for keys[i][0] != znodePrefix || !strings.HasSuffix(keys[i], "/below") {
			i++
		}
		return slices.Delete(keys, i-1, i)
	}
	for _, c := range []struct {
		name   string
		first  func(s store, keys []string, i int) []string
		second func(s store, keys []string, i int) []string
		want   string
	}{
		{"found at once, then late", undecodable, twice, "first byte"},
		{"found late, then at once", twice, undecodable, "comes twice"},
		{"both late", orphan, twice, "its parent is missing"},
		{"late, then another kind", twice, unknown, "comes twice"},
	} {
		for _, gap := range []int{1, 20, batchRecords, 3 * batchRecords, 8 * batchRecords} {
			s, i := maps.Clone(good), 2*batchRecords+17
			keys := c.first(s, c.second(s, slices.Clone(keys), i+gap+16), i)
			_, err := Restore(Options{}, s.inOrder(keys))
			if !errors.Is(err, ErrCheckpoint) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, %d behind it: %v, want %s", c.name, gap, err, c.want)
			}
		}
	}
}

// TestRestore_StopsReading puts endless records after a bad znode.
func TestRestore_StopsReading(t *testing.T) {
	s := make(store)
	s.merge(t, fuzzTree(t).Capture())
	s["z/orphan/x"] = s["z/fuzz"]
	value := slices.Clone(s["z/fuzz"])
	_, err := Restore(Options{}, func(yield func(key, value []byte) bool) {
		for key, value := range s.sorted {
			if !yield(key, value) {
				return
			}
		}
		for i := 0; yield(fmt.Appendf(nil, "z/z%09d", i), value); i++ {
		}
	})
	if err == nil || !strings.Contains(err.Error(), `key "z/orphan/x": its parent is missing`) {
		t.Errorf("Restore: %v", err)
	}
}

// Each record is refused that no tree writes, whatever the meta record says.
func TestBuild_Refuses(t *testing.T) {
	limit := Limit{Weight: 9, Cause: LimitedByMemory}
	for _, tc := range []struct {
		key, value string
		want       string // empty: it is taken
	}{
		{"m", string(appendMeta(nil, meta{})), "comes twice"},
		{"mx", string(appendMeta(nil, meta{})), "unknown kind of key"},
		{"px", "", "unknown kind of key"}, {"qx", "", "unknown kind of key"}, {"s", "", "unknown kind of key"},
		{"s1234567", "", "unknown kind of key"}, {"t12345678", "", "unknown kind of key"},
		{"q", string(appendLimit(nil, limit)), ""},
		{"q", string(appendLimit(nil, Limit{})), "it limits nothing"},
		{"q", "", "truncated"},
		{"q", string(append(limit.append(nil), 1)), ""},
		{"q", string(append(limit.append(nil), 2)), "the mark of a full state is 2"},
		{"q", string(appendLimit(nil, Limit{Weight: -1})), "a limit of -1 bytes"},
		{"q", string(appendLimit(nil, Limit{Weight: 9, Cause: LimitedByDisk})), ""},
		{"q", string(appendLimit(nil, Limit{Weight: 9, Cause: LimitedByDisk + 1})), "a limit of 9 bytes"},
		{"q", string(appendLimit(nil, Limit{Full: true})), "a limit of 0 bytes"},
		{"q", string(appendLimit(nil, Limit{Cause: LimitedByMemory})), "a limit of 0 bytes"},
		{"q", string(appendLimit(nil, Limit{Member: 1})), ""},
		{"s00000001", string(appendSession(nil, &sessionRecord{})), ""},
		{"s00000001", string(appendSession(nil, &sessionRecord{connEpoch: 5})), ""},
		{"s00000001", string(appendSession(nil, &sessionRecord{connEpoch: 6})), "attached at zxid"},
		{"s00000001", string(appendSession(nil, &sessionRecord{connEpoch: -1})), "attached at zxid"},
		{"s00000001", string(appendSession(nil, &sessionRecord{})[:9]), "truncated"},
	} {
		b := builder{t: empty(Options{}), hasMeta: true}
		b.t.lastZxid = 5
		err := b.other([]byte(tc.key), []byte(tc.value))
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s %x: %v, want %q", tc.key, tc.value, err, tc.want)
		}
		if again := b.other([]byte(tc.key), []byte(tc.value)); err == nil && (again == nil || !strings.Contains(again.Error(), "comes twice")) {
			t.Errorf("%s %x again: %v", tc.key, tc.value, again)
		}
	}
	for _, tc := range []struct {
		rec  record
		good bool
	}{
		{record{czxid: 1, mzxid: 5, pzxid: 5}, true}, {record{czxid: 1, mzxid: 6, pzxid: 5}, false}, {record{czxid: 1, mzxid: 5, pzxid: 6}, false},
	} {
		if err := tc.rec.plausible(5); (err == nil) != tc.good {
			t.Errorf("%+v: %v", tc.rec, err)
		}
	}
	voters, _, err := serverlist.ParseConfig("server.1=h1:1:2")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		version, pending proto.Zxid
		good             bool
	}{
		{1, 0, true}, {5, 0, true}, {6, 0, false}, {-1, 0, false}, {1, 2, true}, {1, 5, true}, {1, 6, false}, {2, 2, false}, {2, 1, false}, {1, -1, false}, {-2, -1, false},
	} {
		rec := ensembleRecord{version: tc.version, current: voters, pending: Pending{Serial: tc.pending}}
		if tc.pending != 0 {
			rec.pending.Members = voters
		}
		if err := rec.plausible(5); (err == nil) != tc.good {
			t.Errorf("%+v: %v", rec, err)
		}
	}
	for _, path := range []string{"/zookeeper/config", "/zookeeper/quota"} {
		s := make(store)
		s.merge(t, New(Options{}).CaptureAll())
		delete(s, "z"+path)
		s.agree()
		if _, err := Restore(Options{}, s.sorted); err == nil || !strings.Contains(err.Error(), "znode "+path+" is missing") {
			t.Errorf("without %s: %v", path, err)
		}
	}
}

// A tree with the most znodes is restored, and the statistics of its quotas stay as they are.
func TestBuild_LeavesStatistics(t *testing.T) {
	r := replayed(t,
		zkfiles.Txn{Op: proto.OpCreate, Path: "/zookeeper/quota/a", ParentCversion: 1},
		zkfiles.Txn{Op: proto.OpCreate, Path: "/zookeeper/quota/a/zookeeper_limits", Data: []byte("count=5"), ParentCversion: 1},
		zkfiles.Txn{Op: proto.OpCreate, Path: "/zookeeper/quota/a/zookeeper_stats", ParentCversion: 2},
		zkfiles.Txn{Op: proto.OpSetData, Path: "/zookeeper/quota/a/zookeeper_stats", Data: []byte("count=77,bytes=1"), Version: 1},
	)
	s := make(store)
	s.merge(t, r.t.CaptureAll())
	b := builder{t: empty(Options{})}
	b.t.mostZnodes = r.t.index.len()
	tree, err := b.build(Decode(s.sorted))
	if err != nil || tree.Digest() != r.t.Digest() {
		t.Fatal("the restored tree differs", err)
	}
	if rec := tree.record(tree.get("/zookeeper/quota/a/zookeeper_stats")); rec.data != "count=77,bytes=1" {
		t.Errorf("the statistics become %q", rec.data)
	}
}

// A list is reallocated with half of its capacity when less than a quarter is used, unless it is
// short.
func TestSwapRemove_Shrinks(t *testing.T) {
	for capacity, want := range map[int]string{64: "", 65: "15 of 32 ", 200: "49 of 100 24 of 50 "} {
		s, got := make([]znodeID, capacity), ""
		for len(s) > 0 {
			before := cap(s)
			if s = swapRemove(s, 0, func(znodeID, int32) {}); cap(s) != before {
				got += fmt.Sprintf("%d of %d ", len(s), cap(s))
			}
		}
		if got != want {
			t.Errorf("capacity %d: %s, want %s", capacity, got, want)
		}
	}
}

// Range ends with the first error.
func TestChanges_RangeEnds(t *testing.T) {
	c := fuzzTree(t).CaptureAll()
	c.singles = map[byte]string{ensemblePrefix: "", limitPrefix: ""}
	stop := errors.New("stop")
	for most := 1; most <= c.Len(); most++ {
		calls := 0
		err := c.Range(func([]byte, []byte) error {
			if calls++; calls == most {
				return stop
			}
			return nil
		})
		if !errors.Is(err, stop) || calls != most {
			t.Errorf("%d of %d keys: %v after %d", most, c.Len(), err, calls)
		}
	}
}
