// Package alerts checks the alert rules of deploy/monitoring: each is made true on real servers, by
// a fault, in virtual time, and evaluated by Prometheus' own code over what it would have scraped.
package alerts

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/gozkd/gozkd/audit"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/confighook"
	"github.com/gozkd/gozkd/internal/testkit/rawclient"
	"github.com/gozkd/gozkd/internal/testkit/vfstest"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

func TestMain(m *testing.M) { os.Exit(watchdog.Watch(m).Run()) }

// scenario is a fault, and the alerts that must fire because of it.
type scenario struct {
	name   string
	alerts []string
	run    func(t *testing.T) *world
}

var scenarios = []scenario{
	{"a server stops", []string{"GozkdDown", "GozkdMemberMissing"}, func(t *testing.T) *world {
		w := newWorld(t, 3, nil)
		w.observe(10 * time.Minute)
		w.breaks()
		w.stop(w.other())
		w.observe(7 * time.Minute)
		return w
	}},
	{"two of three stop", []string{"GozkdNoQuorum"}, func(t *testing.T) *world {
		w := newWorld(t, 3, nil)
		w.observe(5 * time.Minute)
		w.breaks()
		w.stop(w.other())
		w.stop(w.other())
		w.observe(3 * time.Minute)
		return w
	}},
	{"another state", []string{"GozkdStateDiverged"}, func(t *testing.T) *world {
		w := newWorld(t, 3, nil)
		c := w.connect(w.leader(), time.Hour)
		w.observe(5 * time.Minute)
		w.breaks()
		corrupt(w.servers[w.other()])
		for i := range 30 { // digests are compared now and then
			create(t, c, fmt.Sprintf("/z%d", i), nil)
			w.observe(w.interval)
		}
		return w
	}},
	{"elections", []string{"GozkdElections"}, func(t *testing.T) *world {
		w := newWorld(t, 3, nil)
		w.observe(5 * time.Minute)
		w.breaks()
		for range 5 {
			id := w.leader()
			w.stop(id)
			w.leader()
			w.observe(2 * time.Minute)
			w.start(id)()
			w.observe(time.Minute)
		}
		return w
	}},
	{"a disk hangs", []string{"GozkdDiskHangs", "GozkdWritesQueue"}, func(t *testing.T) *world {
		disk := newDisk()
		w := newWorld(t, 1, disk.adapt)
		w.observe(5 * time.Minute)
		w.breaks()
		c := w.connect(1, time.Hour)
		disk.delay.Store(int64(8 * time.Minute))
		for i := range 600 {
			create(t, c, fmt.Sprintf("/z%d", i), nil)
		}
		w.observe(7 * time.Minute)
		disk.delay.Store(0)
		return w
	}},
	{"a disk is slow", []string{"GozkdDiskSlow", "GozkdSlowRequests"}, func(t *testing.T) *world {
		disk := newDisk()
		w := newWorld(t, 1, disk.adapt)
		c := w.connect(1, time.Hour)
		w.observe(5 * time.Minute)
		w.breaks()
		disk.delay.Store(int64(3 * time.Second))
		for i := range 80 {
			create(t, c, fmt.Sprintf("/z%d", i), nil)
			w.observe(w.interval)
		}
		return w
	}},
	{"a damaged checkpoint", []string{"GozkdCheckpointReverted"}, func(t *testing.T) *world {
		disk := newDisk()
		w := newWorld(t, 1, func(id int, c *server.Config) {
			disk.adapt(id, c)
			c.SnapCount = 50
		})
		c := w.connect(1, time.Hour)
		var last, before []byte // contents of the file
		for i := range 400 {
			create(t, c, fmt.Sprintf("/z%d", i), make([]byte, 100))
			time.Sleep(100 * time.Millisecond)
			if now := disk.checkpoint(t); !bytes.Equal(now, last) {
				last, before = now, last
			}
		}
		w.observe(time.Minute)
		w.breaks()
		w.stop(1)
		disk.damage(t, before)
		w.start(1)()
		w.observe(time.Minute)
		return w
	}},
	{"a client reads slowly", []string{"GozkdClientMemory"}, func(t *testing.T) *world {
		w := newWorld(t, 1, func(_ int, c *server.Config) { c.MaxBuffer, c.ClientMemory = 64<<10, 512<<10 })
		get := func(c *rawclient.Conn, path string) {
			body := (&proto.PathWatchRequest{Path: path}).Append(nil)
			if err := c.Write(rawclient.AppendRequest(nil, 2, proto.OpGetData, body), time.Minute); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		read := func(c *rawclient.Conn) {
			if _, err := c.ReadFrame(time.Minute); err != nil {
				t.Fatal(err)
			}
		}
		w.observe(2 * time.Minute)
		w.breaks()
		readers := make(map[string]*rawclient.Conn) // by a znode of their own: replies with the same one share memory
		for len(readers) < 50 && unread(w.servers[1]) < 440_000 {
			c, path := w.connect(1, time.Hour), fmt.Sprintf("/large%d", len(readers))
			readers[path] = c
			create(t, c, path, make([]byte, 60_000))
			read(c)
			for range 5 { // a connection in memory takes 256 KiB
				get(c, path)
			}
		}
		for range 28 {
			w.observe(w.interval)
			for path, c := range readers {
				read(c)
				get(c, path)
			}
		}
		return w
	}},
	{"the data are full", []string{"GozkdDataNearLimit", "GozkdDataFull"}, func(t *testing.T) *world {
		limit := int64(-1)
		w := newWorld(t, 1, func(_ int, c *server.Config) { c.DataLimit = limit })
		w.observe(7 * time.Minute)
		w.breaks()
		w.stop(1)
		limit = 1
		w.start(1)()
		w.observe(7 * time.Minute)
		return w
	}},
	{"too many clients for the memory", []string{"GozkdCrowded"}, func(t *testing.T) *world {
		w := newWorld(t, 1, func(_ int, c *server.Config) {
			c.DataLimit, c.MaxClientConns = 1<<20, -1 // there is room for 100 connections
			confighook.Of(c).MemoryUsed = func() int64 { return 0 }
		})
		for range 80 {
			w.connect(1, time.Hour)
		}
		w.observe(7 * time.Minute)
		w.breaks()
		for range 7 {
			w.connect(1, time.Hour)
		}
		nc, err := w.servers[1].Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rawclient.New(nc).Handshake(&proto.ConnectRequest{TimeoutMs: 4000}, time.Minute); err == nil {
			t.Error("a session more than there is room for")
		}
		w.observe(7 * time.Minute)
		return w
	}},
	{"a tenant is over its budget", []string{"GozkdBudgetRefuses"}, func(t *testing.T) *world {
		w := newWorld(t, 1, nil)
		c := w.connect(1, time.Hour)
		create(t, c, "/tenant", nil)
		create(t, c, "/zookeeper/quota/tenant", nil)
		create(t, c, "/zookeeper/quota/tenant/zookeeper_budget", []byte("opsPerSecond=1"))
		w.observe(7 * time.Minute)
		w.breaks()
		for range 5 { // a request of each waits at a time
			c := w.connect(1, time.Hour)
			for range 1000 {
				create(t, c, "/tenant", nil)
			}
		}
		w.observe(13 * time.Minute)
		return w
	}},
	{"a session expires", []string{"GozkdSessionsLost"}, func(t *testing.T) *world {
		w := newWorld(t, 3, nil)
		w.observe(2 * time.Minute)
		w.breaks()
		if err := w.connect(w.leader(), 10*time.Second).Close(); err != nil {
			t.Error(err)
		}
		w.observe(2 * time.Minute)
		return w
	}},
	{"file descriptors", []string{"GozkdFileDescriptors"}, func(t *testing.T) *world {
		w := newWorld(t, 1, nil)
		w.observe(5 * time.Minute)
		w.breaks()
		useDescriptors(t)
		w.observe(7 * time.Minute)
		return w
	}},
	{"a stranger", []string{"GozkdStrangers"}, func(t *testing.T) *world {
		var stranger atomic.Bool
		w := newWorld(t, 3, func(_ int, c *server.Config) {
			if c.PeerSecret = []byte("the secret of all members"); stranger.Load() {
				c.PeerSecret = []byte("not the secret of all members")
			}
		})
		w.observe(5 * time.Minute)
		w.breaks()
		id := w.other()
		w.stop(id)
		stranger.Store(true)
		w.start(id)
		w.observe(3 * time.Minute)
		return w
	}},
	{"a certificate ends soon", []string{"GozkdCertificateExpires"}, func(t *testing.T) *world {
		expires := time.Now().Add(14*24*time.Hour + 5*time.Minute)
		w := newWorld(t, 1, func(_ int, c *server.Config) {
			c.Certificates = func() server.Certificates { return server.Certificates{Expires: expires} }
		})
		w.observe(4 * time.Minute)
		w.breaks()
		w.observe(3 * time.Minute)
		return w
	}},
	{"the audit log is full", []string{"GozkdAuditIncomplete"}, func(t *testing.T) *world {
		disk := newDisk()
		log := audit.New(disk, audit.Options{MaxBytes: 4096})
		t.Cleanup(log.Close)
		w := newWorld(t, 1, func(_ int, c *server.Config) { c.Audit = log })
		c := w.connect(1, time.Hour)
		w.observe(5 * time.Minute)
		w.breaks()
		disk.delay.Store(int64(time.Minute))
		for i := range 100 {
			create(t, c, fmt.Sprintf("/z%d", i), nil)
		}
		w.observe(3 * time.Minute)
		disk.delay.Store(0)
		return w
	}},
	{"the archive", []string{"GozkdArchiveLags", "GozkdArchiveGap", "GozkdArchiveVerifyFailed"}, func(t *testing.T) *world {
		var bad atomic.Bool
		w := newWorld(t, 1, func(_ int, c *server.Config) {
			c.ArchiveStats = func() server.ArchiveStats {
				if a := (server.ArchiveStats{Verified: time.Now()}); !bad.Load() {
					return a
				}
				return server.ArchiveStats{Lag: 2 * time.Minute, Gaps: 1, VerifyFailed: true, Verified: time.Now()}
			}
		})
		w.observe(10 * time.Minute)
		w.breaks()
		bad.Store(true)
		w.observe(7 * time.Minute)
		return w
	}},
	{"the archive is not verified", []string{"GozkdArchiveNotVerified"}, func(t *testing.T) *world {
		verified := time.Now()
		w := newWorld(t, 1, func(_ int, c *server.Config) {
			c.Tick, c.MaxSessionTimeout = time.Minute, 2*time.Hour
			c.MinSessionTimeout = 2 * time.Minute
			c.ArchiveStats = func() server.ArchiveStats { return server.ArchiveStats{Verified: verified} }
		})
		w.interval = 4 * time.Minute
		w.observe(48 * time.Hour)
		w.breaks()
		w.observe(25 * time.Hour)
		return w
	}},
}

func TestAlerts(t *testing.T) {
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			var w *world
			synctest.Test(t, func(t *testing.T) { w = s.run(t) })
			want(t, w, s.alerts)
		})
	}
}

// Each rule has a scenario, and each scenario is about rules that there are.
func TestAlerts_All(t *testing.T) {
	var rules, tried []string
	for _, r := range load(t) {
		rules = append(rules, r.Alert)
	}
	for _, s := range scenarios {
		tried = append(tried, s.alerts...)
	}
	slices.Sort(rules)
	slices.Sort(tried)
	if !slices.Equal(rules, slices.Compact(tried)) {
		t.Errorf("rules %q\ntried %q", rules, tried)
	}
}

// disk is a file system, or a file, whose syncs, or writes, take a while.
type disk struct {
	mem   *vfstest.Mem
	delay atomic.Int64 // a time.Duration, which a sync that waits follows
}

func newDisk() *disk { return &disk{mem: vfstest.NewMem()} }

func (d *disk) adapt(_ int, c *server.Config) {
	c.Dir, confighook.Of(c).DataFS = "/data", d.mem
	confighook.Of(c).LogFS = vfstest.NewFaulty(d.mem, func(op vfstest.Op) error {
		if op.Kind == vfstest.OpSync {
			d.wait()
		}
		return nil
	})
}

func (d *disk) wait() {
	for began := time.Now(); time.Since(began) < time.Duration(d.delay.Load()); {
		time.Sleep(100 * time.Millisecond)
	}
}

func (d *disk) Write(p []byte) (int, error) {
	d.wait()
	return len(p), nil
}

var _ io.Writer = (*disk)(nil)

// checkpoint returns the content of the checkpoint file.
func (d *disk) checkpoint(t *testing.T) []byte {
	t.Helper()
	f, err := d.mem.Open("/data/checkpoint.db")
	if err != nil {
		t.Fatal(err)
	}
	size, err := f.Size()
	b := make([]byte, size)
	if _, readErr := f.ReadAt(b, 0); err == nil && !errors.Is(readErr, io.EOF) {
		err = readErr
	}
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return b
}

// damage changes a page that the last checkpoint wrote. before is the file before it.
func (d *disk) damage(t *testing.T, before []byte) {
	t.Helper()
	now, page := d.checkpoint(t), os.Getpagesize()
	for at := 2 * page; at+page <= min(len(now), len(before)); at += page { // the first two have the meta data
		if bytes.Equal(now[at:at+page], before[at:at+page]) {
			continue
		}
		f, err := d.mem.OpenRW("/data/checkpoint.db")
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteAt(bytes.Repeat([]byte{0xff}, page), int64(at))
		if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatal("the last checkpoint changed no page")
}

// unread returns how many bytes clients have not read.
func unread(s *server.Server) int64 {
	for _, v := range s.Facts().Monitor() {
		if v.Name == "gozkd_client_memory_unread_bytes" {
			return v.Is.(int64)
		}
	}
	return 0
}

// corrupt changes the state of a server behind its back, as bad memory or a bug would.
func corrupt(s *server.Server) {
	field := func(name string) unsafe.Pointer {
		return unsafe.Pointer(reflect.ValueOf(s).Elem().FieldByName("state").FieldByName(name).UnsafeAddr())
	}
	mu, tree := (*sync.RWMutex)(field("RWMutex")), *(**datatree.Tree)(field("tree"))
	mu.Lock()
	defer mu.Unlock()
	body := datatree.CreateSessionBody{TimeoutMs: 1000}
	tree.Apply(datatree.Header{Zxid: tree.LastZxid().Next()}, &datatree.Request{Op: proto.OpCreateSession, Server: 200, Body: body.Append(nil)})
}

// useDescriptors opens files until few more than the limit of file descriptors allows are left.
func useDescriptors(t *testing.T) {
	t.Helper()
	const used = 400
	for range used {
		f, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() }) // read only
	}
	var before syscall.Rlimit
	open, err := os.ReadDir("/proc/self/fd")
	if err = errors.Join(err, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before)); err != nil {
		t.Fatal(err)
	}
	tight := before
	tight.Cur = uint64(len(open)) * 10 / 9
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &tight); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
			t.Error(err)
		}
	})
}
