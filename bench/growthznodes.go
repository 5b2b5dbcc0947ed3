//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gozkd/gozkd/internal/testkit/must"
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

func growZnodes(ctx context.Context, g *growth, k kind, size int) {
	dir := must.Get(os.MkdirTemp("", "gozkd-bench-data-"))
	defer must.Finally(func() error { return os.RemoveAll(dir) })
	opts := server.Options{Keys: growthKeys(), DataDir: dir}
	g.serve(ctx, k, opts, func(p *server.Process) {
		t := targetOf(p)
		fillMany(ctx, p.Addr(), size, payload)
		g.noteMemory(t, size)
		rows := []*workload{getMany(size), setMany(size), madeAndBack()}
		g.warm(ctx, t, rows...)
		for _, sh := range []shape{{1, 1}, {16, 16}} {
			for _, w := range rows {
				g.load(ctx, t, size, sh, w)
			}
		}
		took := checkpoint(ctx, t, size)
		g.note("checkpoint, and start after kill -9", "ms", "checkpoint", t.name, size, took.Seconds()*1e3)
		progress("growth: %s %s: %s: checkpoint in %s", g.piece.name, thousands(float64(size)), t.name, took)
	})
	r := restart(ctx, k, opts, manyPath(size-1))
	g.note("checkpoint, and start after kill -9", "ms", "start", r.name, size, r.took.Seconds()*1e3)
	g.note("checkpoint, and start after kill -9", "ms", "CPU of start", r.name, size, r.cpu.Seconds()*1e3)
	g.note("resident memory", "MiB", "started again", r.name, size, float64(r.memory.rss)/(1<<20))
	progress("growth: %s %s: %s: started again in %s, with %s of CPU", g.piece.name, thousands(float64(size)), r.name, r.took, r.cpu)
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
func fillMany(ctx context.Context, addr string, n int, data []byte) {
	fillOne(addr, growthMade)
	fillAt(ctx, addr, maxLoad, nil, func(i int) string { return growthMade + "/" + strconv.Itoa(i) })
	parents := (n + perParent - 1) / perParent
	fillAt(ctx, addr, parents, nil, func(i int) string { return manyPath(i * perParent)[:len("/p0000")] })
	fillAt(ctx, addr, n, data, manyPath)
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
func checkpoint(ctx context.Context, t target, size int) time.Duration {
	const snapCount, patience = 100_000, 5 * time.Minute // a server may pause after its previous checkpoint
	awaitIdle(ctx, t.pids)
	before := checkpoints(ctx, t.addrs[0])
	w, left := setMany(size), snapCount
	next := w.next
	w.next = func(c *client) bool {
		left--
		return left >= 0 && next(c)
	}
	runOnce(t, shape{16, 16}, w.until(ctx), 0)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		after := checkpoints(ctx, t.addrs[0])
		if n := after.n - before.n; n > 0 {
			return time.Duration((after.ms - before.ms) / n * float64(time.Millisecond))
		}
		if !sleep(ctx, 20*time.Millisecond) {
			must.Failf("none was written after %d writes: %w", snapCount, ctx.Err())
		}
	}
}

// written holds the number of checkpoints a server has written, and their total duration.
type written struct{ n, ms float64 }

// checkpoints asks the server with mntr, where both servers call them snapshots.
func checkpoints(ctx context.Context, addr string) (w written) {
	answer := must.Get(server.FourLetterWord(ctx, addr, "mntr"))
	want := map[string]*float64{"zk_cnt_snapshottime": &w.n, "zk_sum_snapshottime": &w.ms}
	for line := range strings.Lines(answer) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if p := want[key]; p != nil {
			*p = must.Get(strconv.ParseFloat(value, 64))
			delete(want, key)
		}
	}
	if len(want) > 0 {
		must.Failf("mntr does not say how long snapshots took")
	}
	return w
}

// awaitIdle waits until the processes together use less than a tenth of a processor, but at most
// ten seconds: a JVM may always be busy.
func awaitIdle(ctx context.Context, pids []int) {
	const interval, patience = 200 * time.Millisecond, 50
	for range patience {
		before := cpuOf(pids)
		pause(ctx, interval)
		if cpuOf(pids)-before <= interval/10 {
			return
		}
	}
}

// restarted describes a start on the data of a killed server.
type restarted struct {
	name      string
	took, cpu time.Duration
	memory    memory
}

// restart starts a server on a data directory, and kills it when a new session has read a znode.
func restart(ctx context.Context, k kind, opts server.Options, path string) (r restarted) {
	opts.Port = freePort()
	addr := fmt.Sprintf("127.0.0.1:%d", opts.Port)
	var asker sync.WaitGroup
	defer asker.Wait()
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	answered := make(chan time.Time, 1)
	start := time.Now()
	// Ends with the first answer or with asking; awaited above.
	asker.Go(func() {
		for firstRead(addr, path) != nil && sleep(asking, time.Millisecond) {
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
