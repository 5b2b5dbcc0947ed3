//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gozkd/gozkd/internal/backoff"
	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/test/compat/server"
)

// The rows of start.
const (
	startOne   = "start, empty, one member"
	startThree = "start, empty, three members"
	startAgain = "start after kill -9"
)

// benchStart measures three kinds of starts. Two begin with new data directories, for a standalone
// server and for three members, and last from before the first process is started to the first
// answered create of a new session. The third is that of a server on the data of a killed server
// with many znodes, and lasts to the first answered read.
func benchStart(ctx context.Context, s *settings) {
	var list []reading
	note := func(row, what, server string, took []float64) {
		v := spreadOf(took)
		progress("%s: %s: %s, median of %d: %s", row, server, what, len(took), number(v.Median))
		list = append(list, reading{row, what, server, v})
	}
	for _, k := range s.servers {
		n := s.starts
		if k.Name != "gozkd" {
			n = max(n/5, 3)
		}
		for _, start := range []struct {
			row        string
			n, members int
		}{{startOne, n, 1}, {startThree, max(n/4, 3), nMembers}} {
			var took []float64
			var name string
			for range start.n {
				if !s.out.attempt(ctx, start.row, k.Name, func() {
					d, product := startOnce(ctx, k, start.members)
					took, name = append(took, d.Seconds()*1e3), product
				}) {
					break
				}
			}
			if len(took) == start.n {
				note(start.row, "wall ms", name, took)
			}
		}
	}
	for _, k := range s.servers {
		var again []restarted
		if !s.out.attempt(ctx, startAgain, k.Name, func() { again = startsAfterKill(ctx, k, s.znodes) }) {
			continue
		}
		var took, cpu []float64
		for _, r := range again {
			took, cpu = append(took, r.took.Seconds()*1e3), append(cpu, r.cpu.Seconds()*1e3)
		}
		note(startAgain, "wall ms", again[0].name, took)
		note(startAgain, "CPU ms", again[0].name, cpu)
	}
	title := "Start of the process to the first answered create; after kill -9 with %s znodes to the first answered read"
	s.out.report("start", fmt.Sprintf(title, thousands(float64(s.znodes))), list)
}

// startsAfterKill fills a server, kills it, and starts and kills it a few times on its data.
func startsAfterKill(ctx context.Context, k server.Kind, n int) (all []restarted) {
	const starts = 3
	opts := server.Options{Keys: keys()}
	opts.DataDir = must.Get(os.MkdirTemp("", "gozkd-bench-data-"))
	defer must.Finally(func() error { return os.RemoveAll(opts.DataDir) })
	p := must.Get(k.Start(ctx, opts))
	func() {
		defer must.Finally(p.Kill)
		fillMany(ctx, p.Addr(), n, payload)
	}()
	for range starts {
		all = append(all, restart(ctx, k, opts, manyPath(n-1)))
	}
	return all
}

// startOnce measures from before the first process starts until any member has answered a create.
func startOnce(ctx context.Context, k server.Kind, members int) (_ time.Duration, product string) {
	var start time.Time
	var answered func() time.Time
	e := must.Get(k.StartEnsemble(ctx, server.EnsembleOptions{Members: members, Keys: keys(), Starting: func(addrs []string) {
		start = time.Now()
		answered = asking(ctx, addrs, 200*time.Microsecond, func(addr string) error {
			err := askFirst(addr, proto.OpCreate, func(b []byte) []byte {
				return (&proto.CreateRequest{Path: "/first", Data: payload, ACL: openACL}).Append(b, proto.OpCreate)
			}, 0)
			if errors.Is(err, proto.ErrNodeExists) {
				return nil
			}
			return err
		})
	}}))
	defer must.Finally(e.Stop)
	return answered().Sub(start), e.Name()
}

// asking asks each address until it answers. answered returns the time of the first answer.
func asking(ctx context.Context, addrs []string, pause time.Duration, ask func(addr string) error) (answered func() time.Time) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	answers := make(chan time.Time, len(addrs))
	var askers sync.WaitGroup
	for _, addr := range addrs {
		// Ends with the first answer or with ctx; answered waits for it.
		askers.Go(func() {
			for ask(addr) != nil {
				if !backoff.Sleep(ctx, pause) {
					return
				}
			}
			answers <- time.Now()
		})
	}
	return func() (at time.Time) {
		defer askers.Wait()
		defer cancel()
		select {
		case at = <-answers:
		case <-ctx.Done():
			must.Do(ctx.Err())
		}
		return at
	}
}

// askFirst makes the first request of a new session. ZooKeeper may accept a connection before it
// can serve, and then never answers on that connection.
func askFirst(addr string, op proto.OpCode, body func([]byte) []byte, replyBytes int) error {
	const patience = time.Second
	c, err := dialImpatient(addr, 0, 1, patience)
	if err != nil {
		return err
	}
	return errors.Join(c.call(op, body, replyBytes), unix.Close(c.fd))
}

// restarted describes a start on the data of a killed server.
type restarted struct {
	name      string
	took, cpu time.Duration
}

// restart starts a server on a data directory, and kills it when a new session has read a znode.
func restart(ctx context.Context, k server.Kind, opts server.Options, path string) (r restarted) {
	opts.Port = must.Get(server.FreePorts(1))[0]
	start := time.Now()
	answered := asking(ctx, []string{fmt.Sprintf("127.0.0.1:%d", opts.Port)}, time.Millisecond, func(addr string) error {
		return askFirst(addr, proto.OpGetData, (&proto.PathWatchRequest{Path: path}).Append, replyLen(4+dataBytes+proto.StatBytes))
	})
	p := must.Get(k.Start(ctx, opts))
	defer must.Finally(p.Kill)
	r.name, r.took = p.Name(), answered().Sub(start)
	r.cpu = cpuOfOne(p.Pid())
	return r
}
