package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/backoff"
	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/proto"
)

const (
	// probeCommand is the first argument of the process that is the others.
	probeCommand = "probe-process"
	// probeInterval is the time between two pairs of a set and a get.
	probeInterval = 20 * time.Millisecond
	// probePatience is how long the probe waits for its last answers.
	probePatience = 10 * time.Second
	// begin is what the parent writes when the attack begins.
	begin = "begin"
)

// others is the harm that the other clients noticed.
type others struct {
	Samples       int
	P50, P99, Max time.Duration
	Disconnected  int
	Versions      []int32 // the last acknowledged version of each probe's znode
}

// probe is an ordinary client. It sends a set and a get every 20 ms, whether the answers to earlier
// ones have come or not, and measures each from the moment at which it should have been sent: a
// server that stalls for a second owes 50 pairs of answers.
type probe struct {
	zk   *client.Client
	path string

	mu           sync.Mutex
	samples      []time.Duration
	disconnected int
	version      int32
	began        time.Time // of the attack
}

// runProbe probes the servers at addrs, one client each, until in ends, and prints what they
// noticed since the line that says that the attack begins.
func runProbe(addrs []string, in io.Reader, out io.Writer) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var running sync.WaitGroup
	var probes []*probe
	for i, addr := range addrs {
		p := &probe{path: probePath(i), began: time.Now()}
		p.zk = must.Get(connect(ctx, addr, client.Config{OnEvent: p.event}))
		defer must.Finally(p.zk.Close)
		probes = append(probes, p)
		running.Go(func() { p.run(ctx) }) // ends with ctx; awaited below
	}
	fmt.Fprintln(out, "ready")
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		if lines.Text() == begin {
			for _, p := range probes {
				p.reset()
			}
		}
	}
	cancel()
	running.Wait()
	must.Do(json.NewEncoder(out).Encode(summary(probes)))
}

// connect opens a session with a server.
func connect(ctx context.Context, addr string, cfg client.Config) (*client.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cfg.Servers, cfg.SessionTimeout = []string{addr}, sessionTimeoutMs*time.Millisecond
	return client.Connect(ctx, cfg)
}

// probePath returns the znode of a probe. The parent creates it.
func probePath(i int) string { return fmt.Sprintf("/probe-%d", i) }

// summary joins what the probes noticed.
func summary(probes []*probe) *others {
	o := &others{}
	var all []time.Duration
	for _, p := range probes {
		all = append(all, p.samples...)
		o.Disconnected += p.disconnected
		o.Versions = append(o.Versions, p.version)
	}
	slices.Sort(all)
	if o.Samples = len(all); o.Samples > 0 {
		o.P50, o.P99, o.Max = all[len(all)/2], all[len(all)*99/100], all[len(all)-1]
	}
	return o
}

// reset forgets everything that was measured.
func (p *probe) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.samples, p.disconnected, p.began = nil, 0, time.Now()
}

// event counts lost connections.
func (p *probe) event(e client.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.Type == client.EventSession && e.State == client.Connecting {
		p.disconnected++
	}
}

// run makes a pair of requests at each tick, and the last when ctx ends. It waits for the answers.
func (p *probe) run(ctx context.Context) {
	answers, giveUp := context.WithCancel(context.Background())
	defer giveUp()
	var requests sync.WaitGroup
	for next, over := time.Now(), false; !over; {
		next = next.Add(probeInterval)
		if over = !backoff.Sleep(ctx, time.Until(next)); over {
			next = time.Now()
		}
		for _, request := range []func(context.Context) error{p.set, p.get} {
			requests.Go(func() { p.measure(answers, next, request) }) // ends with giveUp; awaited below
		}
	}
	defer time.AfterFunc(probePatience, giveUp).Stop()
	requests.Wait()
}

func (p *probe) get(ctx context.Context) error {
	_, _, err := p.zk.Get(ctx, p.path, false)
	return err
}

func (p *probe) set(ctx context.Context) error {
	stat, err := p.zk.Set(ctx, p.path, make([]byte, 100), client.AnyVersion)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.version = max(p.version, stat.Version)
	return err
}

// measure makes a request that was due at a time, again if its connection was lost. Without an
// answer, because the session has ended, the request lasts until ctx ends.
func (p *probe) measure(ctx context.Context, due time.Time, request func(ctx context.Context) error) {
	err := request(ctx)
	for ; errors.Is(err, proto.ErrConnectionLoss) && ctx.Err() == nil; err = request(ctx) {
	}
	if errors.Is(err, proto.ErrSessionExpired) {
		<-ctx.Done()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if due.After(p.began) {
		p.samples = append(p.samples, time.Since(due))
	}
}
