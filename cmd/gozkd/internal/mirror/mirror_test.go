package mirror

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/clientflags"
	"github.com/gozkd/gozkd/internal/backoff"
	"github.com/gozkd/gozkd/internal/subtree"
	"github.com/gozkd/gozkd/internal/testca"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// member is a server, and a client of it that may do everything.
type member struct {
	s   *server.Server
	zk  *client.Client
	cfg client.Config

	mu   sync.Mutex
	open []net.Conn // connections of cfg
}

func start(t testing.TB, change ...func(*server.Config)) *member {
	t.Helper()
	serve := server.Config{
		InProcess: true, SuperDigest: "super:lK75jTNcA+U9vtVEw5vB51mj/w4=", // super:secret
		Words: []string{"*"},
	}
	for _, f := range change {
		f(&serve)
	}
	s, err := server.New(serve)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	m := &member{s: s}
	m.cfg = client.Config{
		Servers: []string{"x:1"}, Dial: m.dial, Auths: []client.Auth{{Scheme: "digest", Credential: []byte("super:secret")}},
	}
	cfg := m.cfg
	cfg.Dial = func(ctx context.Context, _ string) (net.Conn, error) { return s.Dial(ctx) }
	if m.zk, err = client.Connect(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.zk.Close() })
	return m
}

func (m *member) dial(ctx context.Context, _ string) (net.Conn, error) {
	conn, err := m.s.Dial(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil {
		m.open = append(m.open, conn)
	}
	return conn, err
}

// breakAll breaks the connections of the mirror.
func (m *member) breakAll() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, conn := range m.open {
		_ = conn.Close()
	}
	m.open = nil
}

func (m *member) create(t testing.TB, o client.CreateOptions, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if _, _, err := m.zk.Create(t.Context(), path, []byte(path), o); err != nil {
			t.Fatal(err)
		}
	}
}

// state returns the persistent znodes at and below a path.
func (m *member) state(ctx context.Context, root string) (lines []string, err error) {
	o := subtree.Options{Data: true, ACL: true, Below: subtree.All, NoSystem: true}
	err = subtree.Walk(ctx, m.zk, root, o, func(n *subtree.Znode) error {
		if n.Stat.EphemeralOwner == 0 {
			lines = append(lines, fmt.Sprintf("%s %q %v %v", n.Path, n.Data, n.Data == nil, n.ACL))
		}
		return nil
	})
	if errors.Is(err, proto.ErrNoNode) {
		return nil, nil
	}
	return lines, err
}

// output collects what a mirror prints. Line is called by one goroutine.
type output struct {
	lines chan string
}

func (o *output) line(label, format string, args ...any) {
	select {
	case o.lines <- cli.Labelled(label, format, args...):
	default: // nobody reads, or too late
	}
}

func between(from, to *member, path string) *follower {
	return &follower{
		from: endpoint{from.cfg, new(clientflags.Security)}, to: endpoint{to.cfg, new(clientflags.Security)}, path: path, interval: time.Hour, creations: 1000, changes: newChanges(path),
		line: (&output{lines: make(chan string)}).line,
	}
}

// follow runs a mirror until the result is called.
func follow(t testing.TB, f *follower) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { // ends with stop
		err := f.run(ctx)
		for err != nil && ctx.Err() == nil && !errors.Is(err, errFatal) {
			err = f.run(ctx) // as a service manager does
		}
		done <- err
	}()
	return func() {
		cancel()
		if err := <-done; errors.Is(err, errFatal) {
			t.Error(err)
		}
	}
}

// awaitEqual waits until the persistent znodes of both sides are equal.
func awaitEqual(t testing.TB, a, b *member, path string) {
	t.Helper()
	for {
		left, err := a.state(t.Context(), path)
		right, rightErr := b.state(t.Context(), path)
		if err := errors.Join(err, rightErr); err != nil {
			t.Fatal(err) // also if the test takes too long
		}
		if slices.Equal(left, right) {
			return
		}
		backoff.Sleep(t.Context(), time.Millisecond)
	}
}

func once(t testing.TB, f *follower) error {
	t.Helper()
	f.once = true
	return f.run(t.Context())
}

// Whatever is written to the source while both connections break now and then, and while the mirror
// is started again: the target becomes equal, and nothing else in it changes.
func TestMirror_RandomWrites(t *testing.T) {
	from, to := start(t), start(t)
	to.create(t, client.CreateOptions{}, "/other", "/other/a", "/ab")
	outside, err := to.state(t.Context(), "/")
	if err != nil {
		t.Fatal(err)
	}
	from.create(t, client.CreateOptions{}, "/a")
	f := between(from, to, "/a")
	f.overwrite = true
	stop := follow(t, f)
	defer func() { stop() }()
	rapid.Check(t, func(rt *rapid.T) {
		acl := false
		for range rapid.IntRange(1, 30).Draw(rt, "writes") {
			path := "/a" + strings.Repeat("/b", rapid.IntRange(0, 2).Draw(rt, "depth")) + rapid.SampledFrom([]string{"", "/c", "/c0"}).Draw(rt, "name")
			data := []byte(rapid.SampledFrom([]string{"", "x", "y"}).Draw(rt, "data"))
			var err error
			switch rapid.IntRange(0, 8).Draw(rt, "op") {
			case 0, 1, 2:
				_, _, err = from.zk.Create(t.Context(), path, data, client.CreateOptions{})
			case 3:
				_, err = from.zk.Set(t.Context(), path, data, -1)
			case 4:
				if path != "/a" {
					err = from.zk.Delete(t.Context(), path, -1)
				}
			case 5:
				acl = true
				_, err = from.zk.SetACL(t.Context(), path, rapid.SampledFrom([][]proto.ACL{proto.OpenACL(), proto.ReadACL()}).Draw(rt, "acl"), -1)
			case 6:
				_, _, err = from.zk.Create(t.Context(), path+"/e", data, client.CreateOptions{Ephemeral: true})
			case 7:
				rapid.SampledFrom([]*member{from, to}).Draw(rt, "side").breakAll()
			case 8:
				if rapid.IntRange(0, 9).Draw(rt, "restart") == 0 {
					stop()
					f = between(from, to, "/a")
					f.overwrite = true
					stop = follow(t, f)
				}
			}
			var e *client.Error
			if err != nil && (!errors.As(err, &e) || e.Code == proto.ErrConnectionLoss) {
				rt.Fatal(err)
			}
		}
		if acl {
			f.changes.compareAll() // as the interval does: no watch tells of ACLs
		}
		awaitEqual(t, from, to, "/a")
	})
	all, err := to.state(t.Context(), "/")
	all = slices.DeleteFunc(all, func(line string) bool { return strings.HasPrefix(line, "/a ") || strings.HasPrefix(line, "/a/") })
	if err != nil || !slices.Equal(all, outside) {
		t.Errorf("outside of /a: %v, want %v; %v", all, outside, err)
	}
}

// What could not be copied because of an error is copied later, although nothing changes any more.
func TestMirror_ForgetsNothingAfterAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := start(t), start(t)
		from.create(t, client.CreateOptions{}, "/a", "/a/b")
		f := between(from, to, "/a")
		defer follow(t, f)()
		time.Sleep(time.Minute)
		if err := to.zk.Delete(t.Context(), "/a/b", -1); err != nil {
			t.Fatal(err)
		}
		from.create(t, client.CreateOptions{}, "/a/b/c") // the target has no parent for it
		time.Sleep(f.interval / 2)
		want, err := from.state(t.Context(), "/a")
		if got, errTo := to.state(t.Context(), "/a"); errors.Join(err, errTo) != nil || !slices.Equal(got, want) {
			t.Errorf("the target has %v, %v, want %v, %v", got, errTo, want, err)
		}
	})
}

// A target with other znodes is refused and stays as it is, unless it may lose them. A target that
// only lacks znodes is not refused, so that an interrupted first copy continues.
func TestMirror_Refuses(t *testing.T) {
	from, to := start(t), start(t)
	from.create(t, client.CreateOptions{}, "/a", "/a/b", "/a/c")
	to.create(t, client.CreateOptions{}, "/a", "/a/b")
	if err := once(t, between(from, to, "/a")); err != nil {
		t.Fatal(err)
	}
	awaitEqual(t, from, to, "/a")
	for _, change := range []func() error{
		func() error { _, _, err := to.zk.Create(t.Context(), "/a/d", nil, client.CreateOptions{}); return err },
		func() error { _, err := to.zk.Set(t.Context(), "/a/b", []byte("mine"), -1); return err },
		func() error { _, err := to.zk.SetACL(t.Context(), "/a/b", proto.ReadACL(), -1); return err },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		before, _ := to.state(t.Context(), "/")
		err := once(t, between(from, to, "/a"))
		if after, _ := to.state(t.Context(), "/"); err == nil || !strings.Contains(err.Error(), "--overwrite") || !slices.Equal(before, after) {
			t.Errorf("%v; %v, before %v", err, after, before)
		}
		f := between(from, to, "/a")
		f.overwrite = true
		if err := once(t, f); err != nil {
			t.Fatal(err)
		}
		awaitEqual(t, from, to, "/a")
	}
}

// An error of a side names the side, because each has its own flags for authentication.
func TestMirror_NamesTheSide(t *testing.T) {
	from, to := start(t), start(t)
	from.create(t, client.CreateOptions{}, "/a", "/b")
	from.create(t, client.CreateOptions{ACL: []proto.ACL{{Perms: proto.PermRead, ID: proto.ID{Scheme: "digest", ID: "x:y"}}}}, "/a/b")
	to.create(t, client.CreateOptions{ACL: proto.ReadACL()}, "/b")
	from.create(t, client.CreateOptions{}, "/b/c")
	for path, want := range map[string]string{"/a": "the source: ", "/b": "the target: ", "/none/x": "the target has no /none: "} {
		f := between(from, to, path)
		f.from.Auths, f.to.Auths, f.overwrite = nil, nil, true
		err := once(t, f)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
		if path != "/none/x" && (!errors.Is(err, proto.ErrNoAuth) || !strings.Contains(err.Error(), "authenticate as")) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// A source without the subtree deletes nothing, not even with overwrite, nor when it loses it
// later.
func TestMirror_SourceWithoutRoot(t *testing.T) {
	from, to := start(t), start(t)
	to.create(t, client.CreateOptions{}, "/a", "/a/b")
	f := between(from, to, "/a")
	f.overwrite = true
	if err := once(t, f); err == nil || !strings.Contains(err.Error(), "the source has no /a") {
		t.Error(err)
	}
	from.create(t, client.CreateOptions{}, "/a", "/a/b")
	if err := once(t, f); err != nil {
		t.Fatal(err)
	}
	lines := &output{lines: make(chan string, 1000)} // keeps what comes before the test waits for it
	g := between(from, to, "/a")
	g.line = lines.line
	stop := follow(t, g)
	defer stop()
	awaitLine(t, lines, "2 znodes equal")
	for _, path := range []string{"/a/b", "/a"} {
		if err := from.zk.Delete(t.Context(), path, -1); err != nil {
			t.Fatal(err)
		}
	}
	awaitLine(t, lines, "retrying")
	if _, there, err := to.zk.Exists(t.Context(), "/a", false); err != nil || !there {
		t.Error("the root of the target is gone", err)
	}
}

func awaitLine(t testing.TB, o *output, want string) {
	t.Helper()
	for {
		select {
		case line := <-o.lines:
			if strings.Contains(line, want) {
				return
			}
		case <-t.Context().Done():
			t.Fatal("no line with", want)
		}
	}
}

// Containers and TTL znodes stay such, sequence numbers continue, ephemerals of neither side are
// touched.
func TestMirror_Kinds(t *testing.T) {
	from, to := start(t), start(t)
	from.create(t, client.CreateOptions{}, "/a", "/a/queue")
	from.create(t, client.CreateOptions{Container: true}, "/a/container")
	from.create(t, client.CreateOptions{TTL: time.Hour}, "/a/ttl")
	from.create(t, client.CreateOptions{Ephemeral: true}, "/a/session")
	for range 3 {
		created, _, err := from.zk.Create(t.Context(), "/a/queue/n-", nil, client.CreateOptions{Sequential: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := from.zk.Delete(t.Context(), created, -1); err != nil {
			t.Fatal(err)
		}
	}
	to.create(t, client.CreateOptions{}, "/a", "/a/gone", "/a/kept")
	to.create(t, client.CreateOptions{Ephemeral: true}, "/a/kept/mine")
	f := between(from, to, "/a")
	f.overwrite = true
	if err := once(t, f); err != nil {
		t.Fatal(err)
	}
	conn, err := to.s.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write([]byte("kind")); err != nil {
		t.Fatal(err)
	}
	var answer bytes.Buffer
	if _, err := answer.ReadFrom(conn); err != nil {
		t.Fatal(err)
	}
	if want := "container\t/a/container\nttl\t3600000\t/a/ttl\n2\n"; answer.String() != want {
		t.Errorf("kinds %q, want %q", &answer, want)
	}
	created, _, err := to.zk.Create(t.Context(), "/a/queue/n-", nil, client.CreateOptions{Sequential: true})
	if err != nil || created != "/a/queue/n-0000000003" {
		t.Errorf("%s, %v", created, err)
	}
	names, _, err := to.zk.Children(t.Context(), "/a", false)
	if slices.Sort(names); err != nil || !slices.Equal(names, []string{"container", "kept", "queue", "ttl"}) {
		t.Errorf("%v, %v", names, err)
	}
}

// A source without persistent watches is compared in the interval. A source that went back in time
// ends the mirror.
func TestFollower_Source(t *testing.T) {
	from, to := start(t), start(t)
	from.create(t, client.CreateOptions{}, "/a")
	f := between(from, to, "/a")
	defer f.disconnect()
	f.line = func(label, format string, args ...any) { t.Errorf(label+" "+format, args...) } // both sides report changes
	if err := f.connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.highest = f.source.LastZxid() + 1000
	if err := f.source.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.connect(t.Context()); !errors.Is(err, errFatal) {
		t.Error(err)
	}
}

func TestChanges(t *testing.T) {
	event := func(typ proto.EventType, path string) client.Event { return client.Event{Type: typ, Path: path} }
	c := newChanges("/")
	c.event(event(proto.EventCreated, "/zookeeper/x"))
	if got := c.take(); len(got.rels) > 0 || got.whole {
		t.Errorf("%+v", got)
	}
	c.event(event(proto.EventDataChanged, "/"))
	c.event(event(proto.EventDeleted, "/a"))
	if got := c.take(); !slices.Equal(slices.Sorted(slices.Values(got.paths())), []string{"", "/a"}) || got.created {
		t.Errorf("%+v", got)
	}
	c = newChanges("/a")
	c.event(event(proto.EventCreated, "/ab"))
	c.event(event(proto.EventCreated, "/a/b"))
	c.event(event(proto.EventDataChanged, "/a"))
	if got := c.take(); !slices.Equal(slices.Sorted(slices.Values(got.paths())), []string{"", "/b"}) || !got.created {
		t.Errorf("%+v", got)
	}
	for i := range maxChanges + 1 {
		c.add(fmt.Sprint("/", i), false)
	}
	if got := c.take(); !got.whole || got.paths() != nil {
		t.Errorf("%d paths", len(got.rels))
	}
	c.event(client.Event{Type: client.EventSession, State: client.Connected})
	if got := c.take(); !got.whole {
		t.Errorf("%+v", got)
	}
}

func TestMain_Misused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "auth")
	testca.WriteFile(t, file, []byte("secret"))
	for want, args := range map[string][]string{
		"both needed":         {"--from", "a"},
		"name one PATH":       {"--from", "a", "--to", "b", "/a", "/b"},
		"belongs to the":      {"--from", "a", "--to", "b", "/zookeeper/quota"},
		"/x and /x/y overlap": {"--from", "a/x", "--to", "b,A:2181/x/y", "/"},
		"and / and / overlap": {"--from", "a", "--to", "a", "/"},
		"must be above 0":     {"--from", "a", "--to", "b", "--interval", "0s"},
		"must start with /":   {"--from", "a", "--to", "b", "a"},
		"holds no credential": {"--from", "a", "--to", "b", "--to-auth-file", file},
	} {
		var errs bytes.Buffer
		env := cli.Env{Out: &errs, Err: &errs, Getenv: func(string) string { return "" }}
		if status := Main(t.Context(), args, env); status != cli.Usage || !strings.Contains(errs.String(), want) {
			t.Errorf("%q: status %d, %s", args, status, strings.SplitN(errs.String(), "\n", 2)[0])
		}
	}
}
