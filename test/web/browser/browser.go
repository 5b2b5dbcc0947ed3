// Package browser drives Chromium by the DevTools protocol, over two pipes.
//
// Chromium with --remote-debugging-pipe reads commands from file descriptor 3 and writes answers
// and events to 4: JSON, each message ended by a zero byte. So neither a port nor a library for
// WebSockets is needed.
package browser

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// ErrClosed is returned for commands after the end of the browser.
var ErrClosed = errors.New("browser: Chromium has ended")

// patience bounds the time that Chromium may take to end.
const patience = 20 * time.Second

// Browser is a running Chromium.
type Browser struct {
	cmd    *exec.Cmd
	dir    string
	stderr bytes.Buffer
	done   chan struct{} // closed when no more messages come

	mu      sync.Mutex
	in      io.WriteCloser
	last    int
	waiting map[int]chan message
	events  map[string]func(method string, params json.RawMessage) // by session
}

type message struct {
	ID      int             `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	// Error is of an answer.
	Error *struct{ Message string } `json:"error,omitempty"`
}

// Start starts Chromium without a window. args are further flags.
func Start(program string, args ...string) (*Browser, error) {
	b := &Browser{done: make(chan struct{}), waiting: make(map[int]chan message), events: make(map[string]func(string, json.RawMessage))}
	return b, must.Try(func() { b.start(program, args) })
}

func (b *Browser) start(program string, args []string) {
	b.dir = must.Get(os.MkdirTemp("", "gozkd-browser-"))
	theirIn, in := must.Get2(os.Pipe())
	out, theirOut := must.Get2(os.Pipe())
	b.in = in
	flags := []string{"--headless=new", "--remote-debugging-pipe", "--user-data-dir=" + b.dir, "--no-first-run", "--disable-gpu",
		"--disable-extensions", "--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--disable-dev-shm-usage", "--force-color-profile=srgb", "--hide-scrollbars", "--lang=en"}
	if os.Geteuid() == 0 {
		flags = append(flags, "--no-sandbox") // Chromium refuses to run as root with its sandbox
	}
	b.cmd = exec.Command(program, append(append(flags, args...), "about:blank")...)
	b.cmd.ExtraFiles = []*os.File{theirIn, theirOut}
	b.cmd.Stderr = &b.stderr
	b.cmd.WaitDelay = 1
	err := b.cmd.Start()
	_, _ = theirIn.Close(), theirOut.Close() // ours are the other ends
	if err != nil {
		_, _, _ = in.Close(), out.Close(), os.RemoveAll(b.dir)
		must.Failf("browser: start %s: %w", program, err)
	}
	// Ends with Chromium, which closes the pipe. Close waits for it.
	go b.read(out)
}

// Close ends Chromium and removes its files.
func (b *Browser) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := b.call(ctx, "", "Browser.close", map[string]any{}, nil); err != nil {
		_ = b.cmd.Process.Kill() // may have ended
	}
	<-b.done
	_ = b.cmd.Wait() // its status does not matter any more
	b.mu.Lock()
	defer b.mu.Unlock()
	err := b.in.Close()
	for ctx.Err() == nil { // Chromium's other processes end a little later than the first
		if removed := os.RemoveAll(b.dir); removed == nil {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return errors.Join(err, os.RemoveAll(b.dir))
}

func (b *Browser) read(out *os.File) {
	defer out.Close()
	r := bufio.NewReaderSize(out, 1<<16)
	for {
		raw, err := r.ReadBytes(0)
		if err != nil {
			break
		}
		var m message
		if json.Unmarshal(raw[:len(raw)-1], &m) != nil {
			continue
		}
		b.mu.Lock()
		answer, f := b.waiting[m.ID], b.events[m.Session]
		delete(b.waiting, m.ID)
		b.mu.Unlock()
		switch {
		case m.ID != 0 && answer != nil:
			answer <- m
		case m.Method != "" && f != nil:
			f(m.Method, m.Params)
		}
	}
	close(b.done)
}

// call sends a command and decodes its result.
func (b *Browser) call(ctx context.Context, session, method string, params, result any) error {
	p, err := json.Marshal(params)
	if err != nil {
		return err
	}
	answer := make(chan message, 1) // read never waits
	b.mu.Lock()
	b.last++
	id := b.last
	raw, err := json.Marshal(message{ID: id, Session: session, Method: method, Params: p})
	if err == nil {
		b.waiting[id] = answer
		_, err = b.in.Write(append(raw, 0))
	}
	b.mu.Unlock()
	if err != nil {
		return fmt.Errorf("browser: %s: %w", method, err)
	}
	select {
	case m := <-answer:
		if m.Error != nil {
			return fmt.Errorf("browser: %s: %s", method, m.Error.Message)
		}
		if result == nil {
			return nil
		}
		return json.Unmarshal(m.Result, result)
	case <-b.done:
		return fmt.Errorf("%w: %s\n%s", ErrClosed, method, b.stderr.String())
	case <-ctx.Done():
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.waiting, id)
		return fmt.Errorf("browser: %s: %w", method, ctx.Err())
	}
}

// Page is a tab with cookies and storage of its own.
type Page struct {
	b                        *Browser
	session, target, profile string
}

// NewPage opens a tab. event is called for each event of the tab, in their order, and must not
// send commands.
func (b *Browser) NewPage(ctx context.Context, event func(method string, params json.RawMessage)) (*Page, error) {
	var made struct { // by the commands in turn
		Profile string `json:"browserContextId"`
		Target  string `json:"targetId"`
		Session string `json:"sessionId"`
	}
	err := must.Try(func() {
		must.Do(b.call(ctx, "", "Target.createBrowserContext", map[string]any{}, &made))
		must.Do(b.call(ctx, "", "Target.createTarget", map[string]any{"url": "about:blank", "browserContextId": made.Profile}, &made))
		must.Do(b.call(ctx, "", "Target.attachToTarget", map[string]any{"targetId": made.Target, "flatten": true}, &made))
	})
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events[made.Session] = event
	return &Page{b, made.Session, made.Target, made.Profile}, nil
}

// Close closes the tab and forgets its cookies and storage.
func (p *Page) Close(ctx context.Context) error {
	return p.b.call(ctx, "", "Target.disposeBrowserContext", map[string]any{"browserContextId": p.profile}, nil)
}

// Profile identifies the tab's cookies and storage in commands.
func (p *Page) Profile() string { return p.profile }

// Call sends a command of the DevTools protocol to the tab.
func (p *Page) Call(ctx context.Context, method string, params map[string]any, result any) error {
	if params == nil {
		params = map[string]any{}
	}
	return p.b.call(ctx, p.session, method, params, result)
}

// Eval evaluates an expression in the page, waits for it if it is a promise, and decodes its value.
func (p *Page) Eval(ctx context.Context, expression string, value any) error {
	var answer struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	err := p.Call(ctx, "Runtime.evaluate", map[string]any{"expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true}, &answer)
	switch {
	case err != nil:
		return err
	case answer.ExceptionDetails != nil:
		return fmt.Errorf("browser: %s %s", answer.ExceptionDetails.Text, answer.ExceptionDetails.Exception.Description)
	case value == nil || len(answer.Result.Value) == 0:
		return nil
	}
	return json.Unmarshal(answer.Result.Value, value)
}

// Memory returns the private memory in bytes of the largest process that renders a tab.
func (b *Browser) Memory(ctx context.Context) (int64, error) {
	var info struct {
		Processes []struct {
			Type string `json:"type"`
			ID   int    `json:"id"`
		} `json:"processInfo"`
	}
	if err := b.call(ctx, "", "SystemInfo.getProcessInfo", map[string]any{}, &info); err != nil {
		return 0, err
	}
	var most int64
	for _, p := range info.Processes {
		if p.Type != "renderer" {
			continue
		}
		rollup, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", p.ID))
		if err != nil {
			continue // has ended
		}
		var private int64
		for line := range strings.Lines(string(rollup)) {
			if f := strings.Fields(line); len(f) == 3 && strings.HasPrefix(f[0], "Private_") {
				kb, err := strconv.ParseInt(f[1], 10, 64)
				if err != nil {
					return 0, err
				}
				private += kb << 10
			}
		}
		most = max(most, private)
	}
	if most == 0 {
		return 0, errors.New("browser: /proc has no process of a tab")
	}
	return most, nil
}
