package zktest

import (
	"bytes"
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/internal/cluster"
	"github.com/gozkd/gozkd/internal/printable"
	"github.com/gozkd/gozkd/server"
)

// waitTimeout is how long any wait may take before the test fails.
const waitTimeout = 30 * time.Second

// Option configures Start and StartEnsemble.
type Option func(*options)

type options struct {
	adapt  []func(member int, c *server.Config)
	onDisk bool
	dir    string
	port   int
}

// WithConfig lets f change the configuration of a member before each of its starts. Members are
// numbered from 1. Ports, directories and clock belong to the test kit.
func WithConfig(f func(member int, c *server.Config)) Option {
	return func(o *options) { o.adapt = append(o.adapt, f) }
}

// OnDisk keeps the data in a directory of the test (see Dir) instead of in memory. In either place,
// acknowledged data survives when the member is stopped or killed.
func OnDisk() Option { return func(o *options) { o.onDisk = true } }

// InDir is OnDisk in the given directory. A missing directory is created. The directory stays when
// the test ends, and data of an earlier server in it is used. In an ensemble member N has the
// subdirectory N.
func InDir(dir string) Option { return func(o *options) { o.onDisk, o.dir = true, dir } }

// OnPort sets the port for clients instead of using a free port; members of an ensemble have
// consecutive ports. Tests that run at the same time need different ports.
func OnPort(port int) Option { return func(o *options) { o.port = port } }

// Server is a standalone server. It ends with the test.
type Server struct {
	*Service
	*Member
}

// Start starts a server and returns when it serves.
func Start(t testing.TB, opts ...Option) *Server {
	t.Helper()
	s := start(t, 1, opts)
	return &Server{s, s.member(1)}
}

// With returns the same server for a subtest: failures are reported on the subtest. Changes by the
// subtest stay afterwards; see Snapshot and Rewind.
func (s *Server) With(t testing.TB) *Server {
	t.Helper()
	service := s.with(t)
	return &Server{service, service.member(1)}
}

// Ensemble is a group of servers that replicate their state. It ends with the test.
type Ensemble struct {
	*Service
}

// StartEnsemble starts an ensemble of up to nine members and returns when all serve.
func StartEnsemble(t testing.TB, members int, opts ...Option) *Ensemble {
	t.Helper()
	if members < 1 {
		t.Fatalf("zktest: %d members, allowed are 1 to %d", members, cluster.MaxMembers)
	}
	return &Ensemble{start(t, members, opts)}
}

// With returns the same ensemble for a subtest: failures are reported on the subtest.
func (e *Ensemble) With(t testing.TB) *Ensemble {
	t.Helper()
	return &Ensemble{e.with(t)}
}

// Service holds the methods that Server and Ensemble share: clients, znodes, sessions, time, and
// faults in requests.
type Service struct {
	t        testing.TB
	cluster  *cluster.Cluster
	logs     *logs
	logStart int         // length of the log when t began
	shown    atomic.Bool // the state was logged after t failed
}

func (s *Service) with(t testing.TB) *Service {
	sub := &Service{t: t, cluster: s.cluster, logs: s.logs, logStart: s.logs.end()}
	t.Cleanup(func() { sub.show(t) })
	return sub
}

func start(t testing.TB, members int, opts []Option) *Service {
	t.Helper()
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	s := &Service{t: t, logs: &logs{}}
	cfg := cluster.Config{Members: members, InMemory: inBubble(), Adapt: func(member int, c *server.Config) {
		for _, f := range o.adapt {
			f(member, c)
		}
	}}
	cfg.Logger = hclog.New(&hclog.LoggerOptions{Name: "gozkd", Output: s.logs, Level: hclog.Info, TimeFormat: "15:04:05.000"})
	cfg.ClientPort = o.port
	if cfg.Dir = o.dir; o.onDisk && o.dir == "" {
		cfg.Dir = t.TempDir()
	}
	ctx, cancel := s.context()
	defer cancel()
	var err error
	if s.cluster, err = cluster.Start(ctx, cfg); err != nil {
		t.Fatalf("zktest: %s\n%s", printable.Error(err), s.logs.from(0))
	}
	t.Cleanup(func() {
		s.show(t)
		if err := s.cluster.Close(); err != nil {
			t.Errorf("zktest: close: %v", err)
		}
		select {
		case err := <-s.cluster.Failed():
			t.Errorf("zktest: %s", printable.Error(err))
		default:
		}
	})
	return s
}

// show logs the state once if the test has failed.
func (s *Service) show(t testing.TB) {
	t.Helper()
	if t.Failed() && !s.shown.Swap(true) {
		t.Logf("zktest: how things were when the test had failed\n%s\nwhat the servers logged\n%s", s.Dump(), s.logs.from(s.logStart))
	}
}

// context returns the context of a wait. The test's ends before Cleanup, so it is of no use.
func (s *Service) context() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), waitTimeout)
}

func (s *Service) do(f func(context.Context) error) {
	s.t.Helper()
	ctx, cancel := s.context()
	defer cancel()
	s.must(f(ctx))
}

func (s *Service) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("zktest: %s", printable.Error(err))
	}
}

// inBubble reports whether the caller runs in a bubble of testing/synctest. No API tells, so
// inBubble parses the first line of the stack, such as "goroutine 7 [running, synctest bubble 3]:".
func inBubble() bool {
	line := make([]byte, 100)
	line = line[:runtime.Stack(line, false)]
	line, _, _ = bytes.Cut(line, []byte("\n"))
	return bytes.Contains(line, []byte("synctest bubble"))
}
