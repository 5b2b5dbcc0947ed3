//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/test/compat/server"
)

const perParent = 1000 // znodes

func znodesPiece() growthPiece {
	return growthPiece{
		name: "znodes", title: "Growth with znodes", axis: "znodes of 100 bytes", unit: "znode",
		sizes:   []int{1_000, 10_000, 100_000, 1_000_000},
		measure: growZnodes,
		note: "A thousand znodes per parent. Get and set take one at random; create creates one per connection and deletes it, again and again, each counted. " +
			"Memory is at once after they were created. The checkpoint is the first after 100,000 sets of znodes at random, as the server says in mntr. " +
			"The start is after kill -9, until a new session got one of the znodes.",
	}
}

// growthMade is the parent of the znodes that rounds create, one per connection.
const growthMade = "/m"

func growZnodes(ctx context.Context, g *growth, k kind, size int) error {
	dir, err := os.MkdirTemp("", "gozkd-bench-data-")
	if err != nil {
		return err
	}
	return finally(growZnodesIn(ctx, g, k, size, dir), func() error { return os.RemoveAll(dir) })
}

func growZnodesIn(ctx context.Context, g *growth, k kind, size int, dir string) error {
	opts := server.Options{Keys: growthKeys(), DataDir: dir}
	err := g.serve(ctx, k, opts, func(p *server.Process) error {
		t := targetOf(p)
		if err := fillMany(ctx, p.Addr(), size, payload); err != nil {
			return err
		}
		if _, err := g.noteMemory(t, size); err != nil {
			return err
		}
		rows := []*workload{getMany(size), setMany(size), madeAndBack()}
		if err := g.warm(ctx, t, rows...); err != nil {
			return err
		}
		for _, sh := range []shape{{1, 1}, {16, 16}} {
			for _, w := range rows {
				if err := g.load(ctx, t, size, sh, w); err != nil {
					return err
				}
			}
		}
		took, err := checkpoint(ctx, t, size)
		if err != nil {
			return fmt.Errorf("checkpoint: %w", err)
		}
		g.note("checkpoint, and start after kill -9", "ms", "checkpoint", t.name, size, took.Seconds()*1e3)
		progress("growth: %s %s: %s: checkpoint in %s", g.piece.name, thousands(float64(size)), t.name, took)
		return nil
	})
	if err != nil {
		return err
	}
	r, err := restart(ctx, k, opts, manyPath(size-1))
	if err != nil {
		return fmt.Errorf("start again: %w", err)
	}
	g.note("checkpoint, and start after kill -9", "ms", "start", r.name, size, r.took.Seconds()*1e3)
	g.note("checkpoint, and start after kill -9", "ms", "CPU of start", r.name, size, r.cpu.Seconds()*1e3)
	g.note("resident memory", "MiB", "started again", r.name, size, float64(r.memory.rss)/(1<<20))
	progress("growth: %s %s: %s: started again in %s, with %s of CPU", g.piece.name, thousands(float64(size)), r.name, r.took, r.cpu)
	return nil
}

// manyPath returns the path of the i-th of up to ten million znodes, a thousand per parent. fmt
// would take a large part of a request's time.
func manyPath(i int) string {
	b := [...]byte{'/', 'p', 0, 0, 0, 0, '/', 'n', 0, 0, 0, 0, 0, 0, 0}
	digits(b[2:6], i/perParent)
	digits(b[8:], i)
	return string(b[:])
}

// digits writes the last len(b) digits of v.
func digits(b []byte, v int) {
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = '0' + byte(v%10)
		v /= 10
	}
}

// fillMany creates n znodes at these paths, and the parents for madeAndBack.
func fillMany(ctx context.Context, addr string, n int, data []byte) error {
	if err := fillOne(addr, growthMade); err != nil {
		return err
	}
	if err := fill(ctx, addr, maxLoad, nil, func(i int) string { return growthMade + "/" + strconv.Itoa(i) }); err != nil {
		return err
	}
	parents := (n + perParent - 1) / perParent
	if err := fill(ctx, addr, parents, nil, func(i int) string { return manyPath(i * perParent)[:len("/p0000")] }); err != nil {
		return err
	}
	return fill(ctx, addr, n, data, manyPath)
}

func getMany(n int) *workload {
	return &workload{name: "get", replyBytes: replyLen(4 + dataBytes + proto.StatBytes), next: func(c *client) bool {
		r := proto.PathWatchRequest{Path: manyPath(c.next(n))}
		start := c.begin(proto.OpGetData)
		c.out = r.Append(c.out)
		endFrame(c.out, start)
		return true
	}}
}

func setMany(n int) *workload {
	return &workload{name: "set", replyBytes: replyLen(proto.StatBytes), next: func(c *client) bool {
		r := proto.SetDataRequest{Path: manyPath(c.next(n)), Data: payload, Version: -1}
		start := c.begin(proto.OpSetData)
		c.out = r.Append(c.out)
		endFrame(c.out, start)
		return true
	}}
}

// madeAndBack creates and deletes, so the size stays.
func madeAndBack() *workload {
	return createAndDelete(payload, func(c *client) string { return growthMade + "/" + strconv.Itoa(c.index) + "/made" })
}

// createAndDelete makes each connection create and delete the znode at its path in turn.
func createAndDelete(data []byte, path func(*client) string) *workload {
	remove := func(c *client) bool {
		if c.made == 0 {
			return false
		}
		c.made = 0
		c.request(proto.OpDelete, (&proto.PathVersionRequest{Path: path(c), Version: -1}).Append)
		return true
	}
	return &workload{name: "create/delete", next: func(c *client) bool {
		if remove(c) {
			return true
		}
		c.made = 1
		appendCreate(c, path(c), data)
		return true
	}, undo: &workload{name: "delete", next: remove}}
}

// checkpoint makes the server write a checkpoint and returns the duration that the server reports.
func checkpoint(ctx context.Context, t target, size int) (time.Duration, error) {
	const snapCount, patience = 100_000, 5 * time.Minute // a server may pause after its previous checkpoint
	if err := awaitIdle(ctx, t.pids); err != nil {
		return 0, err
	}
	before, err := checkpoints(ctx, t.addrs[0])
	if err != nil {
		return 0, err
	}
	w, left := setMany(size), snapCount
	next := w.next
	w.next = func(c *client) bool {
		left--
		return left >= 0 && next(c)
	}
	if _, err := runOnce(t, shape{16, 16}, w.until(ctx), 0); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		after, err := checkpoints(ctx, t.addrs[0])
		if err != nil {
			return 0, err
		}
		if n := after.n - before.n; n > 0 {
			return time.Duration((after.ms - before.ms) / n * float64(time.Millisecond)), nil
		}
		if !sleep(ctx, 20*time.Millisecond) {
			return 0, fmt.Errorf("none was written after %d writes: %w", snapCount, ctx.Err())
		}
	}
}

// written holds the number of checkpoints a server has written, and their total duration.
type written struct{ n, ms float64 }

// checkpoints asks the server with mntr, where both servers call them snapshots.
func checkpoints(ctx context.Context, addr string) (w written, err error) {
	answer, err := server.FourLetterWord(ctx, addr, "mntr")
	if err != nil {
		return w, err
	}
	want := map[string]*float64{"zk_cnt_snapshottime": &w.n, "zk_sum_snapshottime": &w.ms}
	for line := range strings.Lines(answer) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if p := want[key]; p != nil {
			if *p, err = strconv.ParseFloat(value, 64); err != nil {
				return w, fmt.Errorf("mntr: %w", err)
			}
			delete(want, key)
		}
	}
	if len(want) > 0 {
		return w, fmt.Errorf("mntr does not say how long snapshots took")
	}
	return w, nil
}

// awaitIdle waits until the processes together use less than a tenth of a processor, but at most
// ten seconds: a JVM may always be busy.
func awaitIdle(ctx context.Context, pids []int) error {
	const interval, patience = 200 * time.Millisecond, 50
	for range patience {
		before, err := cpuOf(pids)
		if err != nil {
			return err
		}
		if !sleep(ctx, interval) {
			return ctx.Err()
		}
		after, err := cpuOf(pids)
		if err != nil || after-before <= interval/10 {
			return err
		}
	}
	return nil
}

// restarted describes a start on the data of a killed server.
type restarted struct {
	name      string
	took, cpu time.Duration
	memory    memory
}

// restart starts a server on a data directory, and kills it when a new session has read a znode.
func restart(ctx context.Context, k kind, opts server.Options, path string) (r restarted, err error) {
	if opts.Port, err = freePort(); err != nil {
		return r, err
	}
	addr := fmt.Sprintf("127.0.0.1:%d", opts.Port)
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	answered := make(chan time.Time, 1)
	start := time.Now()
	// Ends with the first answer or with asking; awaited below.
	go func() {
		for firstRead(addr, path) != nil && sleep(asking, time.Millisecond) {
		}
		answered <- time.Now()
	}()
	p, err := k.start(ctx, opts)
	if err != nil {
		cancel()
		<-answered
		return r, err
	}
	var at time.Time
	select {
	case at = <-answered:
	case <-p.Done():
		err = errors.New("the server has ended:\n" + p.Log())
	}
	if err == nil {
		r.name, r.took = p.Name(), at.Sub(start)
		var cpuErr, memoryErr error
		r.cpu, cpuErr = cpuOfOne(p.Pid())
		r.memory, memoryErr = memoryOf(p.Pid())
		err = errors.Join(cpuErr, memoryErr, ctx.Err())
	} else {
		cancel()
		<-answered
	}
	return r, finally(err, p.Kill)
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
	return finally(err, func() error { return unix.Close(c.fd) })
}

// finally calls must in any case and joins its error to err.
func finally(err error, must func() error) error { return errors.Join(err, must()) }
