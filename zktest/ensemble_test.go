package zktest_test

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/internal/tcpport"
	"github.com/gozkd/gozkd/zktest"
)

func TestEnsemble_StopAndStart(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		e := zktest.StartEnsemble(t, 3)
		c := e.Connect(t)
		must[string](t)(c.Create("/e", nil, zk.FlagEphemeral, open))
		e.Member(2).Stop()
		for range 3 {
			begin := time.Now()
			e.Stop()
			t.Log("stop", time.Since(begin))
			for _, m := range e.Members() {
				if m.Server() != nil {
					t.Errorf("member %d has a server", m.ID())
				}
			}
			e.Stop() // nothing to do
			begin = time.Now()
			e.Start()
			t.Log("start", time.Since(begin))
			e.Start() // nothing to do
			for _, m := range e.Members() {
				if !m.Server().Status().Serving {
					t.Errorf("member %d does not serve", m.ID())
				}
			}
			e.AssertOwner("/e", c.SessionID())
		}
	})
}

func TestInDir_FindsWhatIsThere(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	for range 2 {
		t.Run("", func(t *testing.T) {
			s := zktest.Start(t, zktest.InDir(dir))
			if s.Dir() != dir {
				t.Errorf("the directory is %q, want %q", s.Dir(), dir)
			}
			must[string](t)(s.Connect(t).Create("/n-", nil, zk.FlagSequence, open))
		})
	}
	zktest.Start(t, zktest.InDir(dir)).AssertChildren("/", "n-0000000000", "n-0000000001", "zookeeper")

	e := zktest.StartEnsemble(t, 3, zktest.InDir(filepath.Join(dir, "ensemble")))
	for _, m := range e.Members() {
		if m.Dir() != filepath.Join(dir, "ensemble", strconv.Itoa(m.ID())) {
			t.Errorf("member %d has the directory %q", m.ID(), m.Dir())
		}
		if files, err := os.ReadDir(m.Dir()); err != nil || len(files) == 0 {
			t.Errorf("member %d has %d files in its directory: %v", m.ID(), len(files), err)
		}
	}
}

func TestOnPort(t *testing.T) {
	p, err := tcpport.Reserve("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	p.Yield()
	want := p.Address()
	_, number, _ := net.SplitHostPort(want)
	port, err := strconv.Atoi(number)
	if err != nil {
		t.Fatal(err)
	}
	s := zktest.Start(t, zktest.OnPort(port))
	if s.Address() != want || s.ConnectString() != want {
		t.Errorf("%s and %s, want %s", s.Address(), s.ConnectString(), want)
	}
	s.Connect(t)
}
