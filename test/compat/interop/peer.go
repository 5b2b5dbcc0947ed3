package interop

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/logbuf"
	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/cases"
)

// Command starts a peer. HOST:PORT and the session timeout in milliseconds follow Args; After
// follows those.
type Command struct {
	Lang  string
	Args  []string
	After []string
}

// peer is a running process of a language.
type peer struct {
	lang    string
	version string
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	log     logbuf.Buffer // its standard error
	gone    chan struct{} // closed when it has ended and all its output was read

	mu      sync.Mutex // guards the fields below, and the order of lines on stdin
	last    int
	handles int
	open    map[int]*answer
}

// answer is a peer's answer to a request; the fields after done are set when done is closed.
type answer struct {
	sent  time.Time // before the request was written
	done  chan struct{}
	got   time.Time
	words []string
	err   error
}

// startPeer starts a process and returns when it is connected. ctx kills it; stop ends it
// gracefully.
func startPeer(ctx context.Context, c Command, addr string, timeout time.Duration) *peer {
	args := slices.Concat(c.Args[1:], []string{addr, strconv.FormatInt(timeout.Milliseconds(), 10)}, c.After)
	p := &peer{lang: c.Lang, gone: make(chan struct{}), open: make(map[int]*answer)}
	p.cmd = exec.CommandContext(ctx, c.Args[0], args...)
	p.cmd.Stderr = &p.log
	p.stdin = must.Get(p.cmd.StdinPipe())
	out := must.Get(p.cmd.StdoutPipe())
	ready := &answer{done: make(chan struct{})}
	p.open[0] = ready
	must.Do(p.cmd.Start())
	// Ends with the process, which ctx, kill or stop ends; kill and stop wait for it.
	go p.read(out)
	<-ready.done
	if ready.err != nil {
		must.Do(errors.Join(ready.err, p.kill()))
	}
	p.version = strings.Join(ready.words, " ")
	return p
}

// read reads the answers. Requests open at the end of the process are answered with an error.
func (p *peer) read(out io.Reader) {
	defer close(p.gone)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		got := time.Now()
		words := strings.Fields(lines.Text())
		if len(words) < 2 {
			continue
		}
		id, err := strconv.Atoi(words[0])
		if err != nil {
			continue
		}
		p.mu.Lock()
		a := p.open[id]
		delete(p.open, id)
		p.mu.Unlock()
		if a == nil {
			continue
		}
		a.got, a.words = got, words[2:]
		if words[1] == "err" {
			a.err = fmt.Errorf("%s: %s", p.lang, strings.Join(a.words, " "))
		}
		close(a.done)
	}
	// The status is ignored: a killed peer also has a status.
	_ = p.cmd.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.open {
		a.got, a.err = time.Now(), fmt.Errorf("%s: %w", p.lang, errGone)
		close(a.done)
	}
	p.open = nil
}

var errGone = errors.New("the peer has ended")

// kill ends the process as kill -9 does and waits until it is gone.
func (p *peer) kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.gone
	return nil
}

// stop lets the process close its session, and kills it if it takes too long.
func (p *peer) stop() error { return p.stopWithin(5 * time.Second) }

func (p *peer) stopWithin(patience time.Duration) error {
	_ = p.stdin.Close() // closed already if the process has ended
	select {
	case <-p.gone:
		return nil
	case <-time.After(patience):
		return errors.Join(fmt.Errorf("%s: the peer did not end", p.lang), p.kill())
	}
}

// handle is a thread of work in a peer.
type handle struct {
	p    *peer
	name string
}

func (h *handle) lang() string { return h.p.lang }

func (p *peer) handle() *handle {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.handles++
	return &handle{p: p, name: "h" + strconv.Itoa(p.handles)}
}

// ask sends a request without waiting for the answer.
func (h *handle) ask(verb string, args ...any) *answer {
	var line bytes.Buffer
	p, a := h.p, &answer{done: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	fmt.Fprint(&line, p.last, " ", h.name, " ", verb)
	for _, x := range args {
		fmt.Fprint(&line, " ", x)
	}
	line.WriteByte('\n')
	a.sent = time.Now()
	if p.open == nil {
		a.err = fmt.Errorf("%s: %w", p.lang, errGone)
		close(a.done)
		return a
	}
	p.open[p.last] = a
	if _, err := p.stdin.Write(line.Bytes()); err != nil {
		delete(p.open, p.last)
		a.err = fmt.Errorf("%s: %w", p.lang, err)
		close(a.done)
	}
	return a
}

// do sends a request and waits for the answer.
func (h *handle) do(ctx context.Context, verb string, args ...any) string {
	a := h.ask(verb, args...)
	must.Doing(verb, func() { a.wait(ctx) })
	return strings.Join(a.words, " ")
}

// expect sends a request and ends the case unless it is answered with want, such as yes.
func (h *handle) expect(ctx context.Context, want, verb string, args ...any) {
	cases.Expect(verb+" of "+h.lang(), h.do(ctx, verb, args...), want)
}

func (a *answer) wait(ctx context.Context) string {
	select {
	case <-a.done:
		must.Do(a.err)
	case <-ctx.Done():
		must.Failf("no answer: %w", ctx.Err())
	}
	return strings.Join(a.words, " ")
}

func (a *answer) answered() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}
