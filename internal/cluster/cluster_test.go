package cluster

import (
	"context"
	"errors"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/internal/testkit/vfstest"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/server"
)

func start(t *testing.T, cfg Config) *Cluster {
	t.Helper()
	l, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func member(t *testing.T, l *Cluster, id int) *Member {
	t.Helper()
	m, err := l.Member(id)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Errors have the right class.
func TestErrors_Kinds(t *testing.T) {
	l := start(t, Config{Members: 3})
	first := member(t, l, 1)
	c, _, err := zk.Connect([]string{first.Address()}, 10*time.Second, zk.WithLogger(log.New(io.Discard, "", 0)))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Create("/e", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	soon, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	noMember := func() error { _, err := l.Member(4); return err }
	none := func() error { _, err := l.MemberOf(77); return err }
	for _, c := range []struct {
		name string
		err  error
		kind error
		text string
	}{
		{"a member that is not there", noMember(), ErrNotFound, "numbered 1 to 3"},
		{"a partition with one that is not there", l.Partition([]int{1, 9}), ErrNotFound, "no member 9"},
		{"a member in two groups", l.Partition([]int{1}, []int{1, 2}), ErrInvalid, "two groups"},
		{"a session that is not there", none(), ErrNotFound, "no session 0x4d"},
		{"to cut off one that is not there", l.CloseConnection(77), ErrNotFound, "no session 0x4d"},
		{"to expire one that is not there", l.ExpireSession(t.Context(), 77), ErrNotFound, "0x4d"},
		{"to start what runs", first.Start(t.Context()), ErrState, "running already"},
		{"to resume what runs", first.Resume(), ErrState, "not paused"},
		{"time that goes backwards", l.Advance(t.Context(), -time.Second), ErrInvalid, "forward"},
		{"a znode that is not there", l.Walk(t.Context(), "/none", nil), ErrNotFound, "/none"},
		{"a child of an ephemeral", l.Load(t.Context(), map[string][]byte{"/e/child": nil}), ErrState, "no children for ephemerals"},
	} {
		if c.kind != nil && !errors.Is(c.err, c.kind) || c.err == nil || !strings.Contains(c.err.Error(), c.text) {
			t.Errorf("%s: %v", c.name, c.err)
		}
	}
	for _, m := range l.Members()[:2] {
		if err := m.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	if err := first.Stop(); !errors.Is(err, ErrState) || !strings.Contains(err.Error(), "down") {
		t.Error(err)
	}
	if err := first.CloseConnections(); !errors.Is(err, ErrState) {
		t.Error(err)
	}
	if _, err := l.Leader(soon); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func TestErrors_ServerAlone(t *testing.T) {
	l := start(t, Config{})
	if err := l.Partition([]int{1}); !errors.Is(err, ErrState) {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := member(t, l, 1).Start(t.Context()); !errors.Is(err, ErrState) || !strings.Contains(err.Error(), "closed") {
		t.Error(err)
	}
}

// Settings in Config.Server reach every member, except those that the cluster makes itself.
func TestServer_ReachesMembers(t *testing.T) {
	dir, logDir := t.TempDir(), t.TempDir()
	l := start(t, Config{Members: 3, Dir: dir, Server: server.Config{
		Tick: 100 * time.Millisecond, MaxSessionTimeout: time.Second, Words: []string{"conf"}, SnapCount: 500, ReconfigEnabled: true, LogDir: logDir,
		MemberID: 9, Dir: "/nowhere", Members: []string{"nonsense"}, InProcess: true,
	}})
	for _, m := range l.Members() {
		got := map[string]string{}
		for _, s := range m.Server().Facts().Settings() {
			got[s.Key] = s.Value
		}
		for key, want := range map[string]string{
			"tickTime": "100", "minSessionTimeout": "200", "maxSessionTimeout": "1000", "serverId": string(rune('0' + m.ID())),
			"dataDir": m.Dir(), "dataLogDir": filepath.Join(logDir, filepath.Base(m.Dir())),
		} {
			if got[key] != want {
				t.Errorf("member %d: %s is %q, want %q", m.ID(), key, got[key], want)
			}
		}
		if filepath.Dir(m.Dir()) != dir {
			t.Errorf("member %d: %s", m.ID(), m.Dir())
		}
	}
}

// Data is found again by the same number of members, and refused for any other number.
func TestDir(t *testing.T) {
	three, alone := t.TempDir(), t.TempDir()
	for range 2 {
		l := start(t, Config{Members: 3, Dir: three})
		if err := l.Load(t.Context(), map[string][]byte{"/a": []byte("x")}); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := start(t, Config{Dir: alone}).Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		dir     string
		members int
		text    string
	}{
		{three, 1, "data of 3 members, and 1 want"},
		{three, 5, "data of 3 members, and 5 want"},
		{alone, 3, "data of a server alone"},
	} {
		if _, err := Start(t.Context(), Config{Members: c.members, Dir: c.dir}); !errors.Is(err, ErrState) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%d members: %v", c.members, err)
		}
	}
	if err := os.RemoveAll(filepath.Join(three, "2")); err != nil {
		t.Fatal(err)
	}
	start(t, Config{Members: 3, Dir: three}) // the others admit it again
}

// Members that cannot start end the start of the others, which wait for their majority.
func TestStart_MembersThatCannot(t *testing.T) {
	dir := t.TempDir()
	vfstest.DamagedCheckpoints(t, dir, "2", "3")
	_, err := Start(watchdog.Context(t, time.Minute), Config{Members: 3, Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "corrupt checkpoint") {
		t.Errorf("%v, want the reason of a member that cannot start", err)
	}
}

func TestHost_IPv6(t *testing.T) {
	l, err := Start(t.Context(), Config{Members: 3, Host: "::1"})
	if err != nil && strings.Contains(err.Error(), "cannot assign requested address") {
		t.Skip("no IPv6 here: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// Close ends soon, also with members that are paused, partitioned or down.
func TestClose_InAnyState(t *testing.T) {
	for _, do := range []func(*Member) error{(*Member).Pause, (*Member).Partition, (*Member).Kill, (*Member).Stop} {
		var log strings.Builder
		l := start(t, Config{Members: 3, Logger: hclog.New(&hclog.LoggerOptions{Output: &log})})
		for _, m := range l.Members()[:2] {
			if err := do(m); err != nil {
				t.Fatal(err)
			}
		}
		soon := watchdog.Context(t, 5*time.Second)
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if soon.Err() != nil {
			t.Error("Close took more than 5 s")
		}
		if strings.Contains(log.String(), "[ERROR]") {
			t.Errorf("errors are logged:\n%s", &log)
		}
	}
}
