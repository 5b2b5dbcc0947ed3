// Command gopeer is the Go peer of the recipes that processes in several languages share: it
// executes commands line by line.
//
// Arguments: HOST:PORT TIMEOUT_MS. It prints "0 ready VERSION" once connected. Then it reads
// requests "ID HANDLE VERB ARG..." and answers "ID ok WORD..." or "ID err why". Requests of a
// handle run in sequence, handles in parallel. Data are in hex, "-" when empty. It ends with its
// standard input.
package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gozkd/gozkd/recipes"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: gopeer HOST:PORT TIMEOUT_MS")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1], os.Args[2], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "gopeer:", err)
		os.Exit(1)
	}
}

// verb executes a request and returns the words of the answer.
type verb func(ctx context.Context, h *handle, args []string) (string, error)

// handle is a thread of work with the objects that it holds.
type handle struct {
	client   *recipes.Client
	object   any // the object of the work: a count, a value, a consumer
	release  func(ctx context.Context) error
	requests chan func()
}

// holds records how to release the object just acquired, unless acquiring failed.
func (h *handle) holds(release func(ctx context.Context) error, err error) (string, error) {
	if err == nil && h.release != nil {
		return "", errors.New("the handle holds something already")
	}
	if err == nil {
		h.release = release
	}
	return "", err
}

func run(ctx context.Context, servers, timeout string, in io.Reader, out io.Writer) error {
	session, err := millis(timeout)
	if err != nil {
		return err
	}
	client, err := recipes.Connect(ctx, strings.Split(servers, ","), recipes.SessionTimeout(session))
	if err != nil {
		return err
	}
	answers := &answers{out: out}
	answers.say("0", "ready "+strings.TrimPrefix(runtime.Version(), "go"))
	err = serve(ctx, client, in, answers)
	return errors.Join(err, client.Close())
}

// serve reads requests until in ends, and then cancels those in progress.
func serve(ctx context.Context, client *recipes.Client, in io.Reader, out *answers) error {
	ctx, cancel := context.WithCancel(ctx)
	all, handles := verbs(), make(map[string]*handle)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < 3 {
			return fmt.Errorf("not a request: %q", lines.Text())
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
			answer, err := v(ctx, h, words[3:])
			if err != nil {
				answer = "err " + strings.ReplaceAll(err.Error(), "\n", " ")
			} else {
				answer = strings.TrimSpace("ok " + answer)
			}
			out.say(id, answer)
		}
	}
	return lines.Err()
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

// verbs returns all verbs of the peer.
func verbs() map[string]verb {
	all := map[string]verb{
		"release": func(ctx context.Context, h *handle, _ []string) (string, error) {
			release := h.release
			if release == nil {
				return "", errors.New("the handle holds nothing")
			}
			h.release = nil
			return "", release(ctx)
		},
		"get": func(ctx context.Context, h *handle, a []string) (string, error) {
			data, _, err := h.client.Get(ctx, a[0])
			return tohex(data), err
		},
		"set": func(ctx context.Context, h *handle, a []string) (string, error) {
			data, err := unhex(a[1])
			if err == nil {
				_, err = h.client.Set(ctx, a[0], data, -1)
			}
			return "", err
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

// within runs f for at most this many milliseconds, and reports whether that was enough.
func within(ctx context.Context, ms string, f func(ctx context.Context) error) (bool, error) {
	d, err := millis(ms)
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	err = f(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return false, nil
	}
	return err == nil, err
}

func millis(ms string) (time.Duration, error) {
	n, err := strconv.Atoi(ms)
	return time.Duration(n) * time.Millisecond, err
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func tohex(b []byte) string {
	if len(b) == 0 {
		return "-"
	}
	return hex.EncodeToString(b)
}

func unhex(s string) ([]byte, error) {
	if s == "-" {
		return nil, nil
	}
	return hex.DecodeString(s)
}
