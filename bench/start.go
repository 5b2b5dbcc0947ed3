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
			row  string
			n    int
			once func(context.Context, kind) (time.Duration, string)
		}{{startOne, n, startOnce}, {startThree, max(n/4, 3), startThreeOnce}} {
			var took []float64
			var name string
			for range start.n {
				if !s.out.attempt(ctx, start.row, k.Name, func() {
					d, product := start.once(ctx, k)
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
func startsAfterKill(ctx context.Context, k kind, n int) (all []restarted) {
	const starts = 3
	opts := server.Options{Keys: keys()}
	opts.DataDir = must.Get(os.MkdirTemp("", "gozkd-bench-data-"))
	defer must.Finally(func() error { return os.RemoveAll(opts.DataDir) })
	p := k.start(ctx, opts)
	func() {
		defer must.Finally(p.Kill)
		fillMany(ctx, p.Addr(), n, payload)
	}()
	for range starts {
		all = append(all, restart(ctx, k, opts, manyPath(n-1)))
	}
	return all
}

// startThreeOnce measures from before the first process starts until any member has answered a
// create.
func startThreeOnce(ctx context.Context, k kind) (_ time.Duration, product string) {
	var wg sync.WaitGroup
	defer wg.Wait()
	asking, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	answered := make(chan time.Time, nMembers)
	var start time.Time
	e := k.startEnsembleWith(ctx, server.EnsembleOptions{Members: nMembers, Keys: keys(), Starting: func(addrs []string) {
		start = time.Now()
		for _, addr := range addrs {
			// Ends with the first answer or with asking; awaited above.
			wg.Go(func() {
				for asking.Err() == nil {
					if err := firstCreate(addr); err == nil || errors.Is(err, proto.ErrNodeExists) {
						answered <- time.Now()
						return
					}
					backoff.Sleep(asking, 200*time.Microsecond)
				}
			})
		}
	}})
	defer must.Finally(e.Stop)
	var at time.Time
	select {
	case at = <-answered:
	case <-asking.Done():
		must.Do(asking.Err())
	}
	cancel() // before the members stop
	wg.Wait()
	return at.Sub(start), e.Name()
}

func startOnce(ctx context.Context, k kind) (_ time.Duration, product string) {
	port := must.Get(server.FreePorts(1))[0]
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	var asker sync.WaitGroup
	defer asker.Wait()
	asking, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var answered time.Time
	var err error // why there was no answer
	start := time.Now()
	// Ends with the first answer or with asking; awaited above and below.
	asker.Go(func() {
		for err = firstCreate(addr); err != nil && asking.Err() == nil; err = firstCreate(addr) {
			backoff.Sleep(asking, 200*time.Microsecond)
		}
		answered = time.Now()
	})
	p := k.start(ctx, server.Options{Port: port, Keys: keys()})
	defer must.Finally(p.Stop)
	asker.Wait()
	must.Do(err)
	return answered.Sub(start), p.Name()
}

func firstCreate(addr string) error {
	// ZooKeeper may accept a connection before it can serve, and then never answers on that
	// connection.
	const patience = time.Second
	c, err := dialImpatient(addr, 0, 1, patience)
	if err != nil {
		return err
	}
	err = c.call(proto.OpCreate, func(b []byte) []byte {
		return (&proto.CreateRequest{Path: "/first", Data: payload, ACL: openACL}).Append(b, proto.OpCreate)
	}, 0)
	if err != nil {
		return err
	}
	return c.close()
}

// restarted describes a start on the data of a killed server.
type restarted struct {
	name      string
	took, cpu time.Duration
	memory    memory
}

// restart starts a server on a data directory, and kills it when a new session has read a znode.
func restart(ctx context.Context, k kind, opts server.Options, path string) (r restarted) {
	opts.Port = must.Get(server.FreePorts(1))[0]
	addr := fmt.Sprintf("127.0.0.1:%d", opts.Port)
	var asker sync.WaitGroup
	defer asker.Wait()
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	answered := make(chan time.Time, 1)
	start := time.Now()
	// Ends with the first answer or with asking; awaited above.
	asker.Go(func() {
		for firstRead(addr, path) != nil && backoff.Sleep(asking, time.Millisecond) {
		}
		answered <- time.Now()
	})
	p := k.start(ctx, opts)
	defer must.Finally(p.Kill)
	select {
	case at := <-answered:
		r.name, r.took = p.Name(), at.Sub(start)
	case <-p.Done():
		must.Failf("the server has ended:\n%s", p.Log())
	}
	must.Do(ctx.Err())
	r.cpu, r.memory = cpuOfOne(p.Pid()), memoryOf(p.Pid())
	return r
}

// firstRead reads a znode's data, 100 bytes, in a new session.
func firstRead(addr, path string) error {
	// ZooKeeper may accept a connection before it can serve, and then never answers on that
	// connection.
	const patience = time.Second
	c, err := dialImpatient(addr, 0, 1, patience)
	if err != nil {
		return err
	}
	err = c.call(proto.OpGetData, (&proto.PathWatchRequest{Path: path}).Append, replyLen(4+dataBytes+proto.StatBytes))
	return errors.Join(err, unix.Close(c.fd))
}
