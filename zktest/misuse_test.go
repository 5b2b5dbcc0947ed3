package zktest_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/zktest"
)

// recorder is a test that may fail without failing the real one. Like the TB of some suites it has
// no Deadline.
type recorder struct {
	testing.TB // for methods that are not recorded: TempDir, Context

	mu       sync.Mutex
	failed   bool
	lines    []string
	cleanups []func()
}

// record runs f as a test and returns its result.
func record(t testing.TB, f func(t testing.TB)) *recorder {
	t.Helper()
	r := &recorder{TB: t}
	done := make(chan struct{})
	// Ends when f returns or fails; awaited below.
	go func() {
		defer close(done)
		defer r.clean()
		f(r)
	}()
	<-done
	return r
}

func (r *recorder) clean() {
	for len(r.cleanups) > 0 {
		last := len(r.cleanups) - 1
		f := r.cleanups[last]
		r.cleanups = r.cleanups[:last]
		f()
	}
}

func (r *recorder) Helper()          {}
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

func (r *recorder) Logf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

func (r *recorder) Errorf(format string, args ...any) {
	r.Logf(format, args...)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = true
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) text() string { return strings.Join(r.lines, "\n") }

func TestMisuse(t *testing.T) {
	one := func(f func(s *zktest.Server)) func(t testing.TB) {
		return func(t testing.TB) { f(zktest.Start(t)) }
	}
	three := func(f func(e *zktest.Ensemble)) func(t testing.TB) {
		return func(t testing.TB) { f(zktest.StartEnsemble(t, 3)) }
	}
	for name, c := range map[string]struct {
		f    func(t testing.TB)
		want string
	}{
		"stop twice":            {one(func(s *zktest.Server) { s.Stop(); s.Stop() }), "zktest: the server is down"},
		"kill twice":            {one(func(s *zktest.Server) { s.Kill(); s.Kill() }), "zktest: the server is down"},
		"start while it runs":   {one(func(s *zktest.Server) { s.Start() }), "zktest: the server is running already"},
		"resume while running":  {one(func(s *zktest.Server) { s.Resume() }), "zktest: the server is running, not paused"},
		"pause twice":           {one(func(s *zktest.Server) { s.Pause(); s.Pause() }), "zktest: the server is paused"},
		"stop while paused":     {one(func(s *zktest.Server) { s.Pause(); s.Stop() }), "zktest: the server is paused"},
		"pause while down":      {one(func(s *zktest.Server) { s.Kill(); s.Pause() }), "zktest: the server is down"},
		"disconnect while down": {one(func(s *zktest.Server) { s.Kill(); s.Disconnect() }), "zktest: the server is down"},
		"member 7":              {three(func(e *zktest.Ensemble) { e.Member(7) }), "zktest: there is no member 7: they are numbered 1 to 3"},
		"member 0":              {three(func(e *zktest.Ensemble) { e.Member(0) }), "zktest: there is no member 0"},
		"partition of unknown":  {three(func(e *zktest.Ensemble) { e.Partition([]int{1}, []int{4}) }), "zktest: there is no member 4"},
		"partition twice":       {three(func(e *zktest.Ensemble) { e.Partition([]int{1}, []int{1, 2}) }), "zktest: member 1 is in two groups"},
		"unknown op":            {one(func(s *zktest.Server) { s.DropReply("cerate") }), `zktest: there is no op "cerate"; there are any, connect`},
		"fail with OK":          {one(func(s *zktest.Server) { s.FailNext(zktest.Get, proto.OK) }), "errors are negative"},
		"fail a connect":        {one(func(s *zktest.Server) { s.FailNext(zktest.Connect, proto.ErrNoNode) }), "connect can't be made to fail"},
		"delay by nothing":      {one(func(s *zktest.Server) { s.Delay(zktest.Get, 0) }), "a delay of 0s"},
		"expire unknown":        {one(func(s *zktest.Server) { s.ExpireSession(7) }), "no such session: 0x7"},
		"close unknown":         {one(func(s *zktest.Server) { s.CloseConnection(7) }), "zktest: there is no session 0x7 (the server running"},
		"advance by nothing":    {one(func(s *zktest.Server) { s.Advance(0) }), "zktest: time goes forward, so not by 0s"},
		"advance back":          {one(func(s *zktest.Server) { s.Advance(-1) }), "zktest: time goes forward, so not by -1ns"},
		"no members":            {func(t testing.TB) { zktest.StartEnsemble(t, 0) }, "zktest: 0 members, allowed are 1 to 9"},
		"too many members":      {func(t testing.TB) { zktest.StartEnsemble(t, 10) }, "zktest: 10 members, allowed are 1 to 9"},
		"config": {func(t testing.TB) {
			zktest.Start(t, zktest.WithConfig(func(_ int, c *server.Config) { c.MaxBuffer, c.SnapCount = 1, -1 }))
		}, "MaxBuffer is 1, allowed"},
		"load a bad path":     {one(func(s *zktest.Server) { s.Load(map[string]string{"a": "", "/b/": ""}) }), `load "a": `},
		"load an empty txtar": {one(func(s *zktest.Server) { s.LoadTxtar("no files") }), "the archive has no files"},
		"rewind to nothing":   {one(func(s *zktest.Server) { s.Rewind(zktest.Snapshot{}) }), "rewind"},
		"advance while down":  {one(func(s *zktest.Server) { s.Kill(); s.Advance(time.Hour) }), "zktest: the server down"},
		"missing while down":  {one(func(s *zktest.Server) { s.Kill(); s.AssertMissing("/a") }), "zktest: the server down"},
		"expire without majority": {three(func(e *zktest.Ensemble) {
			e.Member(1).Kill()
			e.Member(2).Pause()
			e.ExpireSession(1)
		}), "zktest: no majority of the members can serve: member 1 down, member 2 paused, member 3 running"},
		"leader without majority": {three(func(e *zktest.Ensemble) {
			e.Partition([]int{1}, []int{2}, []int{3})
			e.Leader()
		}), "zktest: no majority of the members can serve: member 1 running"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			soon := watchdog.Context(t, 15*time.Second)
			r := record(t, c.f)
			if !r.Failed() || !strings.Contains(r.text(), c.want) {
				t.Errorf("got %q, want %q", r.text(), c.want)
			}
			if soon.Err() != nil {
				t.Error("it took more than 15 s")
			}
		})
	}
}

// A suite may wrap testing.T so that only the methods of testing.TB are visible.
func TestStart_WrappedInBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zktest.Start(struct{ testing.TB }{t})
		c := s.Connect(t)
		must[string](t)(c.Create("/a", nil, 0, open))
		time.Sleep(5 * time.Minute)
		s.AssertExists("/a")
	})
}

func TestFailure_ShowsSessionsAndLog(t *testing.T) {
	r := record(t, func(t testing.TB) {
		s := zktest.Start(t)
		c := s.Connect(t)
		must[string](t)(c.Create("/e", []byte("x"), 1, open))
		s.AssertMissing("/e")
	})
	for _, want := range []string{"there is a znode /e", `/e = "x"`, "connected to the server, ephemerals: 1", "serving clients"} {
		if strings.Count(r.text(), want) != 1 {
			t.Errorf("want %q once in:\n%s", want, r.text())
		}
	}
	if r := record(t, func(t testing.TB) { zktest.Start(t).Connect(t) }); len(r.lines) != 0 {
		t.Errorf("a test that passed shows %q", r.lines)
	}
}

func TestConnect_AfterClose(t *testing.T) {
	var s *zktest.Server
	record(t, func(t testing.TB) { s = zktest.Start(t) })
	for name, f := range map[string]func(s *zktest.Server){
		"start":   func(s *zktest.Server) { s.Start() },
		"advance": func(s *zktest.Server) { s.Advance(time.Second) },
		"load":    func(s *zktest.Server) { s.Load(map[string]string{"/a": ""}) },
	} {
		r := record(t, func(t testing.TB) { f(s.With(t)) })
		if !strings.Contains(r.text(), "zktest: closed already") {
			t.Errorf("%s: %q", name, r.text())
		}
	}
	if _, err := s.Dialer()("tcp", s.ConnectString(), time.Second); err == nil {
		t.Error("somebody answers")
	}
}
