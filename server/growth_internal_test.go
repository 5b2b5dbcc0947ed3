package server

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/confighook"
	"github.com/gozkd/gozkd/internal/memlimit"
	"github.com/gozkd/gozkd/internal/vfs"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/facts"
	"github.com/gozkd/gozkd/server/internal/capacity"
	"github.com/gozkd/gozkd/server/internal/liveness"
	"github.com/gozkd/gozkd/server/internal/meter"
	"github.com/gozkd/gozkd/watch"
)

// TestGrowth_FullEndsByItself fills a server. Only what adds data is refused, and after some
// deletions nothing is.
func TestGrowth_FullEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startInProcess(t, Config{DataLimit: 1 << 20, EnforceQuota: true}, withoutMemory)
		c := connectTo(t, s)
		for _, path := range []string{"/q", "/zookeeper/quota/q", "/zookeeper/quota/q/zookeeper_stats", "/zookeeper/quota/q/zookeeper_limits"} {
			text := "count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=1" // counts in zookeeper_limits only
			if _, _, err := c.Create(t.Context(), path, []byte(text), client.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		data := make([]byte, 10_000)
		create := func(path string) error {
			_, _, err := c.Create(t.Context(), path, data, client.CreateOptions{})
			return err
		}
		n, err := 0, error(nil)
		for ; err == nil; n++ {
			err = create(fmt.Sprint("/", n))
			time.Sleep(10 * time.Millisecond)
		}
		if !errors.Is(err, proto.ErrQuotaExceeded) || n < 80 || n > 105 {
			t.Fatalf("create %d of 10,000 bytes: %v", n, err)
		}
		if g := s.Facts().Stats().Growth; !g.Full || g.Weight > g.Limit || g.Limit != 1<<20 || g.Cause != "memory" || g.Server != 1 {
			t.Errorf("full, and the facts are %+v", g)
		}
		time.Sleep(2 * growthInterval)
		g := s.Facts().Stats().Growth
		if text := g.String(); len(g.Largest) != 3 || g.Largest[0].Path != "/100" || g.Largest[0].Weight != g.Largest[2].Weight || !strings.Contains(text, "largest subtrees: /100 9.9 KiB, /101 ") {
			t.Errorf("full, and the facts say %q", text)
		}
		refused := func() int64 { return s.meter.Counted(meter.GrowthRefused) }
		before := refused()
		other := connectTo(t, s) // a client that wants to delete needs a session
		for what, err := range map[string]error{
			"get":                           second(c.Get(t.Context(), "/0", false)),
			"create above the quota, again": ignore(create("/q/y"), proto.ErrQuotaExceeded),
			"create above the quota":        ignore(create("/q/x"), proto.ErrQuotaExceeded),
			"set of less data":              first(c.Set(t.Context(), "/0", data[:9000], -1)),
			"create of what exists":         ignore(create("/1"), proto.ErrNodeExists),
			"create without parent":         ignore(create("/none/1"), proto.ErrNoNode),
			"set of more data":              ignore(first(c.Set(t.Context(), "/1", append(data, 1), -1)), proto.ErrQuotaExceeded),
			"create":                        ignore(create("/more"), proto.ErrQuotaExceeded),
			"delete and create less":        multi(c, "/2", "/more", data[:100]),
			"delete and create more":        ignore(multi(c, "/3", "/more2", append(data, data...)), proto.ErrQuotaExceeded),
		} {
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		if n := refused() - before; n != 3 { // "set of more data", "create" and "delete and create more"
			t.Errorf("%d requests count as refused because the data are full", n)
		}
		for i := 10; i < 20; i++ {
			if err := other.Delete(t.Context(), fmt.Sprint("/", i), -1); err != nil {
				t.Error(err)
			}
		}
		if err := create("/again"); err != nil {
			t.Errorf("after a tenth was deleted: %v", err)
		}
	})
}

// TestGrowth_SaysWhatIsFull: a text that names the state, the server that decides, the end, the
// largest subtrees and the remedy, from 80 percent of the limit on.
func TestGrowth_SaysWhatIsFull(t *testing.T) {
	g := facts.Growth{
		Weight: 79 << 20, Limit: 100 << 20, Resumes: 95 << 20, Cause: "memory", Server: 2,
		Largest: []facts.Subtree{{Path: "/a", Weight: 60 << 20}, {Path: "/b\n", Weight: 1 << 20}},
	}
	if text := g.String(); text != "" {
		t.Error(text)
	}
	const largest = "; largest subtrees: /a 60.0 MiB, /b\\n 1.0 MiB; delete znodes, "
	for _, c := range []struct {
		change func()
		want   string
	}{
		{func() { g.Weight = 80 << 20 }, "data near their limit: 80.0 MiB of 100.0 MiB; the memory of server 2 decides; at the limit growth is refused" +
			largest + "or raise gozkd.dataLimitKB or the memory of that server"},
		{func() { g.Weight, g.Full = 100<<20, true }, "data limit reached: 100.0 MiB of 100.0 MiB; the memory of server 2 decides; growth is refused until below 95.0 MiB" +
			largest + "or raise gozkd.dataLimitKB or the memory of that server"},
		{func() { g.LargestAge = 61500 * time.Millisecond }, "data limit reached: 100.0 MiB of 100.0 MiB; the memory of server 2 decides; growth is refused until below 95.0 MiB" +
			strings.Replace(largest, ":", " 1m1s ago:", 1) + "or raise gozkd.dataLimitKB or the memory of that server"},
		{func() { g.Cause, g.Largest = "disk", nil }, "data limit reached: 100.0 MiB of 100.0 MiB; the disk of server 2 decides; growth is refused until below 95.0 MiB" +
			"; delete znodes, or make room on that disk, lower gozkd.diskReserveKB if it is set, or raise the limit of file sizes (ulimit -f)"},
		{func() { g.Server = -1 }, "data limit reached: 100.0 MiB of 100.0 MiB; the disks of most servers decide; growth is refused until below 95.0 MiB" +
			"; delete znodes, or make room on these disks, lower gozkd.diskReserveKB if it is set, or raise the limit of file sizes (ulimit -f)"},
	} {
		if c.change(); g.String() != c.want {
			t.Errorf("%s\nwant\n%s", g, c.want)
		}
	}
}

// TestGrowth_RoomOnDisk: the room for a checkpoint is what the disk has beside the reserve, with
// the present checkpoint. A configured reserve counts for all members. The automatic one, of two
// segments or a quarter of the disk, does not. With a negative reserve, or without a directory, the
// disk does not count.
func TestGrowth_RoomOnDisk(t *testing.T) {
	on := func(weight int64) capacity.Ability {
		return capacity.Ability{Weight: weight, Cause: capacity.Disk}
	}
	file := capacity.OnDisk(memlimit.FileSize())
	for _, c := range []struct {
		size, free, reserve, checkpoint int64
		all, majority                   capacity.Ability
	}{
		{1 << 20, 5000, 1000, 0, on(2000), capacity.Ability{}},
		{1 << 20, 1300, 1000, 1100, on(700), capacity.Ability{}},
		{1 << 20, 100, 1000, 1500, on(300), capacity.Ability{}},
		{1 << 20, 100, 1000, 0, on(1), capacity.Ability{}},
		{1 << 20, 100, -1000, 0, file, capacity.Ability{}},
		{1 << 20, 100_000, 0, 1000, file, on(50_500 - 8192)},
		{1 << 20, 8192, 0, 9000, file, on(404)},
		{20_000, 19_000, 0, 1000, file, on(10_000 - 2500)},
		{20_000, 0, 0, 0, file, on(1)},
	} {
		cfg := Config{Dir: t.TempDir(), DiskReserve: c.reserve, SegmentBytes: 8192, DataLimit: -1}
		if err := os.WriteFile(filepath.Join(cfg.Dir, "checkpoint.db"), make([]byte, c.checkpoint), 0o600); err != nil {
			t.Fatal(err)
		}
		confighook.Of(&cfg).Disk = func() vfs.Space { return vfs.Space{Size: c.size, Free: c.free} }
		s, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if r := s.growth.ability(); r.Ability != c.all || r.Disk != c.majority {
			t.Errorf("%+v: %+v", c, r)
		}
		if s.growth.cfg.Dir = ""; s.growth.ability() != (capacity.Report{}) {
			t.Errorf("in memory: %+v", s.growth.ability())
		}
	}
}

// TestGrowth_LogDisk: while the disk of the log lacks its reserve, the state may not grow, however
// large the disk of the data is.
func TestGrowth_LogDisk(t *testing.T) {
	data, log := t.TempDir(), t.TempDir()
	space, known := vfs.SpaceOf(log)
	if !known {
		t.Skip("the room on disks is not known here")
	}
	for reserve, want := range map[int64]capacity.Ability{
		space.Free / 2: {Weight: (1<<60 - space.Free/2) / 2, Cause: capacity.Disk},
		1 << 59:        {Weight: 1, Cause: capacity.Disk},
	} {
		cfg := Config{Dir: data, LogDir: log, DiskReserve: reserve, DataLimit: -1}
		confighook.Of(&cfg).Disk = func() vfs.Space { return vfs.Space{Size: 1 << 60, Free: 1 << 60} }
		s, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if r := s.growth.ability(); r.Ability != want {
			t.Errorf("with a reserve of %d: %+v, want %+v", reserve, r, want)
		}
	}
}

// TestState_WeighsTheLargestOfManySubtrees: a large subtree is found among more children of the
// root than are kept.
func TestState_WeighsTheLargestOfManySubtrees(t *testing.T) {
	s := state{tree: datatree.New(datatree.Options{})}
	create := func(path string, data []byte) {
		c := proto.CreateRequest{Path: path, Data: data, ACL: proto.OpenACL()}
		r := datatree.Request{Op: proto.OpCreate, Body: c.Append(nil, proto.OpCreate)}
		s.tree.Apply(datatree.Header{Zxid: s.tree.LastZxid() + 1}, &r)
	}
	create("/large", nil)
	for i := range 4000 {
		create(fmt.Sprint("/", i), nil)
		create(fmt.Sprint("/large/", i), make([]byte, 200))
	}
	list := s.weighSubtrees().largest
	if len(list) != 3 || list[0].Path != "/large" || list[0].Weight < 4000*200 || list[0].Weight > 4000*400 {
		t.Error(list)
	}
}

// The data leave room for the clients that are there, although quiet connections take little.
func TestGrowth_LeavesRoomForClients(t *testing.T) {
	const allowed = 39 << 20
	s, err := New(Config{DataLimit: allowed})
	if err != nil {
		t.Fatal(err)
	}
	g := s.growth
	nc, _ := net.Pipe() // nothing reads or writes
	s.conns.locals.Add(7, liveness.Local[*conn]{Conn: newConn(s, nc, portPlain, "client"), TimeoutMs: 1000}, time.Now())
	for used, most := range map[int64]int64{0: allowed, 20 << 20: 14 << 20, 24 << 20: 10 << 20, 100 << 20: allowed / 8} {
		g.connections.Store(100 << 20) // strangers do not count
		s.conns.byID, s.conns.bySession = map[watch.ConnID]*conn{1: nil, 2: nil, 3: nil, 4: nil}, map[proto.SessionID]*conn{1: nil}
		if n := s.conns.attached(); n != 50<<20 {
			t.Errorf("of four connections one has a session and one a local session, and %d bytes", n)
		}
		g.attached = func() int64 { return used }
		if a := g.ability(); a.Weight > most || a.Weight < allowed/8 || a.Cause != capacity.Memory {
			t.Errorf("beside %d bytes of connections the data may take %+v, want at most %d", used, a, most)
		}
	}
}

// Clients leave a server only while the memory of its clients keeps the state full, and while there
// is room for those that come back; none if there are few, and none from a server that has an equal
// part of the sessions. A leader without clients takes no part.
func TestGrowth_Spreads(t *testing.T) {
	const allowed, sessions, own = 16 << 20, 80, 46
	most := capacity.CrowdLimit(allowed, 0, false)/16*15 + capacity.ConnectionCost
	full := datatree.Limit{Weight: 1, Cause: datatree.LimitedByMemory, Member: 1}
	for _, c := range []struct {
		what   string
		limit  datatree.Limit
		used   int64 // by connections
		others int   // connected members
		leader bool  // leaves clients to the others
		want   bool
	}{
		{"uneven", full, most, 1, false, true},
		{"little room is left", full, most + 1, 1, false, false},
		{"some room", full, 2 << 20, 1, false, true},
		{"few clients", full, 1 << 20, 1, false, false},
		{"no limit", datatree.Limit{}, most, 1, false, false},
		{"not full", datatree.Limit{Weight: 1 << 30, Cause: datatree.LimitedByMemory, Member: 1}, most, 1, false, false},
		{"the disk makes it full", datatree.Limit{Weight: 1, Cause: datatree.LimitedByDisk, Member: 1}, most, 1, false, false},
		{"another member makes it full", datatree.Limit{Weight: 1, Cause: datatree.LimitedByMemory, Member: 2}, most, 1, false, false},
		{"alone", full, most, 0, false, false},
		{"no clients at the leader", full, most, 1, true, false},
		{"no clients at the leader, which is not connected", full, most, 0, true, false},
		{"two have clients", full, most, 2, true, true},
	} {
		s, err := New(Config{MemberID: 1, DataLimit: allowed, LeaderWithoutClients: c.leader})
		if err != nil {
			t.Fatal(err)
		}
		apply := func(op proto.OpCode, body []byte) {
			r := datatree.Request{Op: op, Body: body}
			if res, _ := s.state.tree.Apply(datatree.Header{Zxid: s.state.tree.LastZxid() + 1}, &r); res.Err != proto.OK {
				t.Fatal(res.Err)
			}
		}
		session := datatree.CreateSessionBody{TimeoutMs: 1000}
		for range sessions {
			apply(proto.OpCreateSession, session.Append(nil))
		}
		apply(proto.OpSetLimit, datatree.SetLimitBody{Limit: c.limit}.Append(nil))
		closed := 0
		for i := range own {
			nc, _ := net.Pipe() // nothing reads or writes
			s.conns.bySession[proto.SessionID(i)] = newConn(s, nc, portPlain, "client")
		}
		s.growth.attached = func() int64 { return c.used }
		s.growth.connections.Store(c.used)
		s.growth.spread(c.others)
		for _, conn := range s.conns.bySession {
			if conn.IsClosed() {
				closed++
			}
		}
		if closed > 1 || closed == 1 != c.want {
			t.Errorf("%s: %d connections were closed", c.what, closed)
		}
	}
}

// Clients that a server has in excess go in the order in which they were heard from, a fiftieth of
// the excess at a time: no caller within the program, none that waits for an answer, and none that
// went in the last ten minutes. An eighth more than an equal part is no excess.
func TestSpread(t *testing.T) {
	const equal = 40
	for sessions, want := range map[int]int{equal: 0, 45: 0, 46: 1, 90: 1, 91: 2} {
		s, err := New(Config{})
		if err != nil {
			t.Fatal(err)
		}
		table, now, conns := &s.conns, time.Now(), []*conn(nil)
		for i := range sessions { // the first is the quietest
			nc, _ := net.Pipe() // nothing reads or writes
			c := newConn(s, nc, portPlain, "client")
			c.NoteHeard(now.Add(time.Hour + time.Duration(i)*time.Second))
			conns, table.bySession[proto.SessionID(i)] = append(conns, c), c
		}
		conns[0].as = &Caller{}
		conns[1].enqueue(testRequest{op: proto.OpGetData})
		table.moved[2], table.moved[3] = now.Add(time.Minute-moveInterval), now.Add(-moveInterval)
		for next := 3; next <= 3+want; next += max(1, want) {
			table.spread(equal)
			for i, c := range conns {
				if c.Lock(); c.ClosedLocked() != (i >= 3 && i < next+want) {
					t.Errorf("%d sessions: that of client %d is closed %v", sessions, i, c.ClosedLocked())
				}
				c.Unlock()
			}
		}
	}
}

func first[T any](_ T, err error) error { return err }

// A client whose request has come and waits, for whatever it waits, is not sent away: the answer
// would be lost. Another client goes, although it has been quiet for a shorter time.
func TestSpread_KeepsWhoWaits(t *testing.T) {
	const long = 600 << 10
	for _, tc := range []struct {
		name  string
		bytes int // of the request
		block func(s *Server, gate *gate) (unblock func())
	}{
		{"for the window", long, func(s *Server, _ *gate) func() {
			of := s.writes.Long.Take(512<<10, nobody{}, time.Hour)
			s.writes.Enter(of, false, time.Hour)
			return func() { s.writes.Free(of) }
		}},
		{"for a place", long, func(s *Server, _ *gate) func() {
			of := s.writes.Long.Take(s.cfg.maxWriteBytes(), nobody{}, time.Hour)
			return func() { s.writes.Free(of) }
		}},
		{"for other writes", 0, func(s *Server, _ *gate) func() {
			n := 0
			for s.writes.Try(0) {
				n++
			}
			return func() {
				for range n {
					s.writes.Release(0, nil)
				}
			}
		}},
		{"for a turn", 0, func(s *Server, _ *gate) func() {
			s.conns.links.SetCount(math.MaxInt32)
			for range cap(s.conns.turns.bursts) {
				s.conns.turns.burst()
			}
			return func() {
				for range cap(s.conns.turns.bursts) {
					<-s.conns.turns.bursts
				}
			}
		}},
		{"for its rest", 100, func(_ *Server, gate *gate) func() {
			gate.closed = make(chan struct{})
			return func() { close(gate.closed) }
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := startInProcess(t, Config{})
				dials, waits := [2]int{}, &gate{}
				var clients [2]*client.Client
				for i := range clients {
					cfg := clientOf(s)
					cfg.Dial = func(ctx context.Context, _ string) (_ net.Conn, err error) {
						nc, err := s.Dial(ctx)
						if dials[i]++; i == 0 {
							waits.Conn, nc = nc, waits
						}
						return nc, err
					}
					var err error
					if clients[i], err = client.Connect(t.Context(), cfg); err != nil {
						t.Fatal(err)
					}
					defer func() { _ = clients[i].Close() }()
				}
				unblock, answer := tc.block(s, waits), make(chan error, 1)
				go func() { answer <- first(clients[0].Set(t.Context(), "/zookeeper", make([]byte, tc.bytes), -1)) }()
				time.Sleep(time.Second)
				if tc.name != "for a turn" {
					if err := second(clients[1].Get(t.Context(), "/", false)); err != nil {
						t.Fatal(err)
					}
				}
				for range 3 {
					synctest.Wait()
					s.conns.spread(0)
				}
				synctest.Wait()
				if len(answer) > 0 {
					t.Error("the request does not wait, so this test shows nothing")
				}
				unblock()
				if err := <-answer; err != nil {
					t.Error(err)
				}
				time.Sleep(10 * time.Second) // the other comes back
				if synctest.Wait(); dials != [2]int{1, 2} {
					t.Errorf("the client that waits has connected %d times, the other %d times", dials[0], dials[1])
				}
			})
		})
	}
}

// gate lets half of what is written through until it is open. nil: it is.
type gate struct {
	net.Conn
	closed chan struct{}
}

func (g *gate) Write(b []byte) (n int, err error) {
	if g.closed == nil {
		return g.Conn.Write(b)
	}
	n, err = g.Conn.Write(b[:len(b)/2])
	if <-g.closed; err != nil {
		return n, err
	}
	m, err := g.Conn.Write(b[n:])
	return n + m, err
}

// nobody is the sender of a frame, and does nothing.
type nobody struct{}

func (nobody) Host() string         { return "" }
func (nobody) Waits() time.Duration { return 0 }
func (nobody) Gone() bool           { return false }
func (nobody) Close()               {}

func second[T, U any](_ T, _ U, err error) error { return err }

// ignore returns nil if err is the expected error.
func ignore(err, expected error) error {
	if errors.Is(err, expected) {
		return nil
	}
	return fmt.Errorf("%w, want %w", err, expected)
}

// multi deletes and creates in one transaction.
func multi(c *client.Client, deleted, created string, data []byte) error {
	_, err := c.Multi(context.Background(), client.DeleteOp(deleted, -1), client.CreateOp(created, data, client.CreateOptions{}))
	return err
}
