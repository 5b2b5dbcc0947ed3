package main

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

// load is clients that take locks and write until they are stopped.
type load struct {
	stopping chan struct{} // closed by end
	running  sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	now     counts
	last    time.Time // when a client was last successful
	total   counts
	reasons []string
}

// counts are what the clients saw during a time.
type counts struct {
	done     int // locks taken and released with a change made under them, and writes
	repeated int // requests that failed with the connection, and were made again
	lost     int // sessions
	failed   int // everything else: a client that repeats its requests does not survive it
	pause    time.Duration
}

// startLoad starts clients, and returns when each has done something.
func startLoad(ctx context.Context, root string, addrs, clients []string) *load {
	l := &load{stopping: make(chan struct{}), last: time.Now()}
	start := map[string]func(){
		"go-zookeeper": func() { l.startGo(addrs) },
		"kazoo": func() {
			l.startScript("kazoo", exec.Command(install.Kazoo(ctx, root), root+"/test/upgrade/locks.py", strings.Join(addrs, ",")))
		},
		"curator": func() {
			l.startScript("curator", exec.Command("java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
				"-Dlogback.configurationFile="+root+"/test/compat/java/logback.xml", "-cp", install.JavaClient(ctx, root), "LockLoad", strings.Join(addrs, ",")))
		},
	}
	for _, name := range clients {
		if start[name] == nil {
			must.Do(errors.Join(fmt.Errorf("%q is not a client", name), l.end()))
		}
		if err := must.Try(start[name]); err != nil {
			must.Do(errors.Join(fmt.Errorf("%s: %w", name, err), l.end()))
		}
	}
	return l
}

func (l *load) stopped() bool {
	select {
	case <-l.stopping:
		return true
	default:
		return false
	}
}

func (l *load) did() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now.done++
	l.note()
}

// note updates the longest time without success. The caller must hold mu.
func (l *load) note() {
	now := time.Now()
	l.now.pause = max(l.now.pause, now.Sub(l.last))
	l.last = now
}

func (l *load) repeats() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now.repeated++
}

func (l *load) lost(who string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now.lost++
	l.reasons = append(l.reasons, who+" lost its session")
}

func (l *load) fails(who, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now.failed++
	l.reasons = append(l.reasons, who+": "+why)
}

// counts returns what was seen since the last call.
func (l *load) counts() counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.note()
	c := l.now
	l.total.lost += c.lost
	l.total.failed += c.failed
	l.now = counts{}
	return c
}

// end stops the clients, and returns what went wrong with them.
func (l *load) end() error {
	if !l.stopped() {
		close(l.stopping)
	}
	l.running.Wait()
	l.counts()
	if l.total.lost+l.total.failed == 0 {
		return nil
	}
	return fmt.Errorf("%d sessions lost, %d errors that a client does not survive:\n%s", l.total.lost, l.total.failed, strings.Join(l.reasons[:min(20, len(l.reasons))], "\n"))
}

// startScript starts a client in another language, and returns after its first success. It prints a
// line for what it did: done, repeated, lost, or failed and the reason. It ends when its standard
// input is closed.
func (l *load) startScript(name string, cmd *exec.Cmd) {
	in, out := must.Get(cmd.StdinPipe()), must.Get(cmd.StdoutPipe())
	cmd.Stderr = os.Stderr
	must.Do(cmd.Start())
	first, over := make(chan struct{}), make(chan struct{})
	// Ends when the script closes its output; end waits for it.
	l.running.Go(func() {
		defer close(over)
		l.readScript(name, out, first)
		if err := cmd.Wait(); err != nil || !l.stopped() {
			l.fails(name, fmt.Sprintf("the script ended: %v", err))
		}
	})
	// Ends with stopping or the script; end waits for it.
	l.running.Go(func() {
		select {
		case <-l.stopping:
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

func (l *load) readScript(name string, out io.Reader, first chan struct{}) {
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
