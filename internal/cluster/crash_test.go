package cluster

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gozkd/gozkd/internal/confighook"
	"github.com/gozkd/gozkd/internal/testkit/vfstest"
	"github.com/gozkd/gozkd/internal/vfs"
	"github.com/gozkd/gozkd/server"
)

// A server that stops by itself is down, reports why, and can be started again.
func TestFailed_MemberStoppedByItself(t *testing.T) {
	var broken atomic.Bool
	full := errors.New("no space left on this disk")
	fs := vfstest.NewFaulty(vfs.OS{}, func(op vfstest.Op) error {
		if op.Kind == vfstest.OpWrite && broken.Load() {
			return full
		}
		return nil
	})
	l := start(t, Config{Members: 3, Dir: t.TempDir(), Adapt: func(member int, c *server.Config) {
		if member == 2 {
			confighook.Of(c).LogFS = fs
		}
	}})
	m := member(t, l, 2)
	broken.Store(true)
	if err := l.Load(t.Context(), map[string][]byte{"/a": nil}); err != nil { // the other two have it
		t.Fatal(err)
	}
	if err := <-l.Failed(); !errors.Is(err, full) || !strings.Contains(err.Error(), "member 2 stopped by itself") {
		t.Errorf("failed: %v", err)
	}
	if m.State() != Down || m.Server() != nil {
		t.Errorf("it is %s", m.State())
	}
	broken.Store(false)
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := m.Server().CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !m.Server().Walk("/a", func(server.Znode) bool { return true }) {
		t.Error("it lacks what was written without it")
	}
	if err := m.Kill(); err != nil {
		t.Error(err)
	}
	select {
	case err := <-l.Failed():
		t.Errorf("a kill counts as a failure: %v", err)
	default:
	}
}
