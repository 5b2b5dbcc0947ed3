// Command gopeer is the Go peer of the recipes that processes in several languages share: it
// executes commands line by line.
//
// Arguments: HOST:PORT TIMEOUT_MS, and "unguarded" for a planted fault. It prints "0 ready VERSION"
// once connected. Then it reads requests "ID HANDLE VERB ARG..." and answers "ID ok WORD..." or
// "ID err why". Requests of a handle run in sequence, handles in parallel. Data are in hex, "-"
// when empty. It ends with its standard input.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/test/compat/interop"
)

func main() {
	unguarded := len(os.Args) == 4 && os.Args[3] == "unguarded"
	if len(os.Args) != 3 && !unguarded {
		fmt.Fprintln(os.Stderr, "usage: gopeer HOST:PORT TIMEOUT_MS [unguarded]")
		os.Exit(2)
	}
	all := verbs()
	addGuarded(all, unguarded)
	if err := must.Try(func() { run(context.Background(), all, os.Args[1], os.Args[2], os.Stdin, os.Stdout) }); err != nil {
		fmt.Fprintln(os.Stderr, "gopeer:", err)
		os.Exit(1)
	}
}

// verb executes a request and returns the words of the answer.
type verb func(ctx context.Context, h *handle, args []string) string

// handle is a thread of work with the objects that it holds.
type handle struct {
	client   *recipes.Client
	object   any // the object of the work: a count, a value, a consumer
	release  func(ctx context.Context) error
	requests chan func()
}

// holds records how to release the object just acquired. It returns the answer to the request.
func (h *handle) holds(release func(ctx context.Context) error) string {
	if h.release != nil {
		must.Failf("the handle holds something already")
	}
	h.release = release
	return ""
}

// closes makes a release of Close.
func closes(c io.Closer) func(context.Context) error {
	return func(context.Context) error { return c.Close() }
}

func run(ctx context.Context, all map[string]verb, servers, timeout string, in io.Reader, out io.Writer) {
	client := must.Get(recipes.Connect(ctx, strings.Split(servers, ","), recipes.SessionTimeout(millis(timeout))))
	defer must.Finally(client.Close)
	answers := &answers{out: out}
	answers.say("0", "ready "+strings.TrimPrefix(runtime.Version(), "go"))
	serve(ctx, client, all, in, answers)
}

// serve reads requests until in ends, and then cancels those in progress.
func serve(ctx context.Context, client *recipes.Client, all map[string]verb, in io.Reader, out *answers) {
	ctx, cancel := context.WithCancel(ctx)
	handles := make(map[string]*handle)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < 3 {
			must.Failf("not a request: %q", lines.Text())
		}
		id, v := words[0], all[words[2]]
		if v == nil {
			out.say(id, "err no verb "+words[2])
			continue
		}
		h := handles[words[1]]
		if h == nil {
			h = &handle{client: client, requests: make(chan func(), 100)} // room for more than the driver ever asks ahead
			handles[words[1]] = h
			defer close(h.requests)
			// Closing requests stops it, running awaits it.
			running.Go(func() {
				for f := range h.requests {
					f()
				}
			})
		}
		h.requests <- func() {
			var answer string
			if err := must.Try(func() { answer = strings.TrimSpace("ok " + v(ctx, h, words[3:])) }); err != nil {
				answer = "err " + strings.ReplaceAll(err.Error(), "\n", " ")
			}
			out.say(id, answer)
		}
	}
	must.Do(lines.Err())
}

// answers writes a line at a time.
type answers struct {
	mu  sync.Mutex
	out io.Writer
}

// say writes an answer. If nobody reads them any more, the requests end too.
func (a *answers) say(id, words string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, _ = fmt.Fprintln(a.out, id, words)
}

func verbs() map[string]verb {
	all := map[string]verb{
		"release": func(ctx context.Context, h *handle, _ []string) string {
			release := h.release
			if release == nil {
				must.Failf("the handle holds nothing")
			}
			h.release = nil
			must.Do(release(ctx))
			return ""
		},
		"get": func(ctx context.Context, h *handle, a []string) string {
			data, _ := must.Get2(h.client.Get(ctx, a[0]))
			return interop.Hex(data)
		},
		"set": func(ctx context.Context, h *handle, a []string) string {
			must.Get(h.client.Set(ctx, a[0], interop.Unhex(a[1]), -1))
			return ""
		},
	}
	addLocks(all)
	addElections(all)
	addBarriers(all)
	addState(all)
	addGroups(all)
	addQueues(all)
	addDiscovery(all)
	return all
}

// within runs f for at most this many milliseconds, and reports whether that was enough, and f got
// what it tried to acquire.
func within(ctx context.Context, ms string, f func(ctx context.Context) error) bool {
	ctx, cancel := context.WithTimeout(ctx, millis(ms))
	defer cancel()
	err := f(ctx)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, recipes.ErrNotAcquired) {
		return false
	}
	must.Do(err)
	return true
}

func millis(ms string) time.Duration {
	return time.Duration(must.Get(strconv.Atoi(ms))) * time.Millisecond
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
