// Package lockload runs other people's clients, which take locks and count under them without a
// break: go-zookeeper, kazoo and Curator. A Load notes each lost session, and each error that a
// client does not survive by repeating its request.
package lockload

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/install"
)

// startLimit bounds how long a client may take to do something, on a machine under load.
const startLimit = 2 * time.Minute

// Load is clients that take locks and write until they are stopped.
type Load struct {
	working context.Context // ends with End
	stop    context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	now     Counts
	last    time.Time // when a client was last successful
	total   Counts
	reasons []string
}

// Counts holds the observations of the clients during a time.
type Counts struct {
	Done     int // locks taken and released with a change made under them, and writes
	Repeated int // requests that failed with the connection, and were made again
	Lost     int // sessions
	Failed   int // everything else: a client that repeats its requests does not survive it
	Pause    time.Duration
}

// Start starts clients, and returns when each has done something.
func Start(ctx context.Context, root string, addrs, clients []string) *Load {
	l := &Load{last: time.Now()}
	l.working, l.stop = context.WithCancel(context.Background())
	start := map[string]func(){
		"go-zookeeper": func() { l.startGo(addrs) },
		"kazoo": func() {
			l.startScript("kazoo", exec.Command(install.Kazoo(ctx, root), root+"/test/compat/lockload/locks.py", strings.Join(addrs, ",")))
		},
		"curator": func() {
			java := append(install.Java(root, "128m", install.JavaClient(ctx, root)), "LockLoad", strings.Join(addrs, ","))
			l.startScript("curator", exec.Command(java[0], java[1:]...))
		},
	}
	for _, name := range clients {
		if start[name] == nil {
			must.Do(errors.Join(fmt.Errorf("%q is not a client", name), l.End()))
		}
		if err := must.Try(start[name]); err != nil {
			must.Do(errors.Join(fmt.Errorf("%s: %w", name, err), l.End()))
		}
	}
	return l
}

// count changes the counts. why, unless it is empty, is for End to tell.
func (l *Load) count(change func(c *Counts), why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.now)
	if why != "" {
		l.reasons = append(l.reasons, why)
	}
}

func (l *Load) did() {
	l.count(func(c *Counts) {
		c.Done++
		l.note()
	}, "")
}

// note updates the longest time without success. The caller must hold mu.
func (l *Load) note() {
	now := time.Now()
	l.now.Pause = max(l.now.Pause, now.Sub(l.last))
	l.last = now
}

func (l *Load) repeats() { l.count(func(c *Counts) { c.Repeated++ }, "") }

func (l *Load) lost(who string) { l.count(func(c *Counts) { c.Lost++ }, who+" lost its session") }

func (l *Load) fails(who, why string) { l.count(func(c *Counts) { c.Failed++ }, who+": "+why) }

// Counts returns the observations since the last call.
func (l *Load) Counts() Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.note()
	c := l.now
	l.total.Lost += c.Lost
	l.total.Failed += c.Failed
	l.now = Counts{}
	return c
}

// AwaitWrites returns when a client was successful again, and an error if none was within limit.
func (l *Load) AwaitWrites(ctx context.Context, limit time.Duration) error {
	done := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.now.Done
	}
	before := done()
	return must.Try(func() {
		must.Await(ctx, limit, "a client writes", func() error {
			if done() == before {
				return errors.New("none did")
			}
			return nil
		})
	})
}

// End stops the clients. The error says how many sessions were lost and how many errors were fatal
// to a client.
func (l *Load) End() error {
	l.stop()
	l.running.Wait()
	l.Counts()
	if l.total.Lost+l.total.Failed == 0 {
		return nil
	}
	return fmt.Errorf("%d sessions lost, %d errors that a client does not survive:\n%s", l.total.Lost, l.total.Failed, strings.Join(l.reasons[:min(20, len(l.reasons))], "\n"))
}

// startScript starts a client in another language, and returns after the client's first success.
// For each act the client prints a line: done, repeated, lost, or failed and the reason. The client
// ends when its standard input is closed.
func (l *Load) startScript(name string, cmd *exec.Cmd) {
	in, out := must.Get(cmd.StdinPipe()), must.Get(cmd.StdoutPipe())
	cmd.Stderr = os.Stderr
	must.Do(cmd.Start())
	first, over := make(chan struct{}), make(chan struct{})
	// Ends when the script closes its output; awaited by End.
	l.running.Go(func() {
		defer close(over)
		l.readScript(name, out, first)
		if err := cmd.Wait(); err != nil || l.working.Err() == nil {
			l.fails(name, fmt.Sprintf("the script ended: %v", err))
		}
	})
	// Ends with End or the script; awaited by End.
	l.running.Go(func() {
		select {
		case <-l.working.Done():
		case <-over:
		}
		_ = in.Close() // the script may be gone
	})
	select {
	case <-first:
	case <-over:
		must.Failf("the script ended")
	case <-time.After(startLimit):
		must.Failf("nothing done within %v", startLimit)
	}
}

func (l *Load) readScript(name string, out io.Reader, first chan struct{}) {
	begin := sync.OnceFunc(func() { close(first) })
	for lines := bufio.NewScanner(out); lines.Scan(); {
		switch word, rest, _ := strings.Cut(lines.Text(), " "); word {
		case "done":
			l.did()
			begin()
		case "repeated":
			l.repeats()
		case "lost":
			l.lost(name)
		default:
			l.fails(name, word+" "+rest)
		}
	}
}
