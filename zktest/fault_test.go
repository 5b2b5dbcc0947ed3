package zktest_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/zktest"
)

// stopwatch returns a function that reports whether more than d has passed: in a bubble, of the
// bubble's time, otherwise of the time without other load.
func stopwatch(t *testing.T, bubble bool, d time.Duration) (late func() bool) {
	if bubble {
		begin := time.Now()
		return func() bool { return time.Since(begin) > d }
	}
	ctx := watchdog.Context(t, d)
	return func() bool { return ctx.Err() != nil }
}

// Whatever the state is, a test ends at once.
func TestEnd_IsPrompt(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		bubble := strings.Contains(t.Name(), "/bubble")
		for name, f := range map[string]func(t testing.TB, e *zktest.Ensemble, conns []*zk.Conn){
			"a paused leader": func(_ testing.TB, e *zktest.Ensemble, _ []*zk.Conn) { e.Leader().Pause() },
			"all paused":      func(_ testing.TB, e *zktest.Ensemble, _ []*zk.Conn) { each(e, (*zktest.Member).Pause) },
			"all down":        func(_ testing.TB, e *zktest.Ensemble, _ []*zk.Conn) { each(e, (*zktest.Member).Kill) },
			"all cut off":     func(_ testing.TB, e *zktest.Ensemble, _ []*zk.Conn) { each(e, (*zktest.Member).Partition) },
			"paused and cut off": func(_ testing.TB, e *zktest.Ensemble, _ []*zk.Conn) {
				each(e, (*zktest.Member).Partition)
				each(e, (*zktest.Member).Pause)
			},
			"nobody hears anybody": func(_ testing.TB, e *zktest.Ensemble, _ []*zk.Conn) { e.Partition([]int{1}, []int{2}) },
			"armed faults": func(_ testing.TB, e *zktest.Ensemble, _ []*zk.Conn) {
				e.DropReply(zktest.Create, zktest.Times(-1))
				e.FailNext(zktest.Any, proto.ErrNoNode, zktest.Times(-1))
			},
			"held requests": func(_ testing.TB, e *zktest.Ensemble, conns []*zk.Conn) {
				e.Delay(zktest.Get, time.Hour, zktest.Times(len(conns)))
				f := e.Delay(zktest.Set, time.Hour)
				go func() { _, _ = conns[0].Set("/", nil, -1) }() // ends with the connection
				f.Wait()
			},
		} {
			var late func() bool
			ends := func() { late = stopwatch(t, bubble, 20*time.Second) }
			r := record(t, func(t testing.TB) {
				e := zktest.StartEnsemble(t, 3)
				var conns []*zk.Conn
				for range 6 {
					conns = append(conns, e.Connect(t))
				}
				f(t, e, conns)
				ends()
			})
			// Delayed requests wait for half a minute or more; go-zookeeper waits a second for the
			// reply to closeSession.
			if tookLong := late(); r.Failed() || tookLong {
				t.Errorf("%s: longer than 20 s: %t, %s", name, tookLong, r.text())
			}
		}
	})
}

func each(e *zktest.Ensemble, f func(*zktest.Member)) {
	for _, m := range e.Members() {
		f(m)
	}
}

// A paused server answers nothing, and continues after Resume.
func TestPause_RequestsUnderWay(t *testing.T) {
	rounds := exhaustive.Or(6, 20)
	everywhere(t, func(t *testing.T) {
		s := zktest.Start(t)
		var conns []*zk.Conn
		for range 5 {
			conns = append(conns, s.ConnectTimeout(t, time.Minute))
		}
		for range rounds {
			var wg sync.WaitGroup
			done := make(chan error, 1000)
			for _, c := range conns {
				wg.Go(func() { // ends when all requests are answered
					for range 20 {
						_, err := c.Create("/n-", nil, zk.FlagSequence, open)
						_, _, readErr := c.Children("/")
						done <- errors.Join(err, readErr)
					}
				})
			}
			first := <-done
			s.Pause()
			s.Resume()
			wg.Wait()
			done <- first
			for range len(conns) * 20 {
				if err := <-done; err != nil {
					t.Fatal(err)
				}
			}
		}
		s.Pause()
		word, err := s.Dialer()("tcp", s.ConnectString(), time.Second)
		if err == nil { // over TCP the system accepts the connection
			defer func() { _ = word.Close() }()
			_, _ = word.Write([]byte("ruok"))
			_ = word.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
			if answer, err := bufio.NewReader(word).Peek(1); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("a paused server answers %q, %v", answer, err)
			}
		}
		s.Resume()
		if n := len(s.Znode("/").Path); n != 1 {
			t.Error(n)
		}
		if got := s.Znode("/").Stat.NumChildren; int(got) != rounds*5*20+1 {
			t.Errorf("%d children", got)
		}
	})
}

// A leader that was paused or partitioned steps down when it comes back, and its clients are served
// again with their sessions.
func TestLeader_ComesBack(t *testing.T) {
	for _, c := range []struct {
		name    string
		go_, on func(*zktest.Member)
	}{
		{"paused", (*zktest.Member).Pause, (*zktest.Member).Resume},
		{"partitioned", (*zktest.Member).Partition, (*zktest.Member).Heal},
		{"killed", (*zktest.Member).Kill, (*zktest.Member).Start},
		{"stopped", (*zktest.Member).Stop, (*zktest.Member).Start},
	} {
		t.Run(c.name, func(t *testing.T) {
			everywhere(t, func(t *testing.T) {
				e := zktest.StartEnsemble(t, 3)
				old := e.Leader()
				there, elsewhere := old.ConnectTo(t), e.Followers()[0].ConnectTo(t)
				must[string](t)(there.Create("/mine", nil, zk.FlagEphemeral, open))
				id := there.SessionID()
				c.go_(old)
				for e.Leader().ID() == old.ID() {
					time.Sleep(time.Millisecond)
				}
				until(func() error { _, err := elsewhere.Create("/since", nil, 0, open); return err })
				c.on(old)
				until(func() error {
					_, err := there.Set("/since", []byte("x"), -1)
					return err
				})
				if there.SessionID() != id {
					t.Error("the session was lost")
				}
				e.AssertOwner("/mine", id)
				e.AssertData("/since", "x")
				if e.MemberOf(there).ID() != old.ID() {
					t.Error("it knows no other member")
				}
			})
		})
	}
}

// Sessions at a partitioned member expire when their time is over; sessions at the others do not.
func TestAdvance_CutOff(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		e := zktest.StartEnsemble(t, 3)
		// On a machine under load a member may stand still: it closes its connections, and replies
		// are lost.
		create := func(c *zk.Conn, path string) {
			until(func() error {
				_, err := c.Create(path, nil, zk.FlagEphemeral, open)
				if errors.Is(err, zk.ErrNodeExists) {
					return nil
				}
				return err
			})
		}
		for _, m := range e.Members() {
			in, out := e.Member(m.ID()%3+1).ConnectTo(t), m.ConnectTo(t)
			create(in, "/in")
			create(out, "/out")
			m.Partition()
			e.Advance(time.Hour)
			e.AssertMissing("/out")
			e.AssertOwner("/in", in.SessionID())
			e.Heal()
			in.Close()
		}
		c := e.Connect(t)
		create(c, "/all")
		e.Partition([]int{1}, []int{2}, []int{3})
		e.Heal()
		e.Leader()
		e.Advance(time.Second)
		e.AssertOwner("/all", c.SessionID())
	})
}

// Many servers run at the same time, each in its own subtest.
func TestStart_Parallel(t *testing.T) {
	for i := range scaled(50) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			e := zktest.StartEnsemble(t, 1+i%3)
			t.Run("sub", func(t *testing.T) {
				e := e.With(t)
				c := e.Connect(t)
				must[string](t)(c.Create("/e", nil, zk.FlagEphemeral, open))
				e.AssertOwner("/e", c.SessionID())
			})
			e.AssertMissing("/e")
		})
	}
}

// Concurrent operations do not stop the clock of a bubble.
func TestMember_Concurrently(t *testing.T) {
	everywhere(t, func(t *testing.T) {
		e := zktest.StartEnsemble(t, 3)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() { e.Advance(time.Minute) }) // each ends by itself
			wg.Go(e.Leader().Restart)
			wg.Go(func() { e.MemberOf(e.Connect(t)) })
		}
		wg.Wait()
		e.AssertMissing("/a")
	})
}

func TestDial_Refused(t *testing.T) {
	s := zktest.Start(t)
	for range scaled(100) {
		s.Kill()
		if nc, err := net.Dial("tcp", s.Address()); err == nil {
			_ = nc.Close()
			t.Fatal("somebody listens")
		} else if !strings.Contains(err.Error(), "refused") {
			t.Fatal(err)
		}
		s.Start()
	}
}
