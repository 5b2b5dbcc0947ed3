package moving

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/backup"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/zkdata"
	"github.com/gozkd/gozkd/internal/backoff"
)

// question is what status and finish ask a running migration, as JSON over its socket.
type question struct {
	Finish              bool
	Tail                []string
	Unverified, Stopped bool
}

// answer is a line of the reply. The last line has Done.
type answer struct {
	Line  string `json:",omitempty"`
	Done  bool   `json:",omitempty"`
	Error string `json:",omitempty"`
}

// maxQuestion bounds a question.
const maxQuestion = 1 << 20

// controlOf returns the socket of the migration into a directory, which is beside the directory:
// that one must be empty.
func controlOf(into string) string { return filepath.Clean(into) + ".migrate" }

// listenControl listens on the socket. One that a killed migration left behind is replaced.
func listenControl(into string) (net.Listener, error) {
	path := controlOf(into)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	if c, err := net.Dial("unix", path); err == nil {
		return nil, errors.Join(fmt.Errorf("another gozkd migrate into %s is running", into), c.Close())
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSocket != 0 {
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("the socket of the migration: %w\nIts path may have about 100 bytes: if %s is too long, name --into relative to a directory near it", err, path)
	}
	return l, os.Chmod(path, 0o600)
}

// serve answers status and finish until the listener is closed.
func (m *migration) serve(ctx context.Context, running *sync.WaitGroup, l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		running.Go(func() {
			defer func() { _ = c.Close() }() // the answer is complete
			m.answer(ctx, c)
		})
	}
}

// answer answers a question. A client that closes the connection interrupts a finish that waits.
func (m *migration) answer(ctx context.Context, c net.Conn) {
	const patience = 5 * time.Second
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = c.SetReadDeadline(time.Unix(1, 0)) })() // ends the read below
	var q question
	if err := errors.Join(c.SetDeadline(time.Now().Add(patience)), json.NewDecoder(io.LimitReader(c, maxQuestion)).Decode(&q), c.SetDeadline(time.Time{})); err != nil {
		return
	}
	w := json.NewEncoder(c)
	say := func(label, format string, args ...any) {
		_ = w.Encode(answer{Line: cli.Labelled(label, format, args...)}) // a client that is gone cancels ctx
	}
	if !q.Finish {
		m.report(ctx, say)
		_ = w.Encode(answer{Done: true})
		return
	}
	var watching sync.WaitGroup
	watching.Go(func() {
		_, _ = c.Read(make([]byte, 1)) // the client sends nothing more: returns when it is gone
		cancel()
	})
	err := m.finish(ctx, &q, func(label, format string, args ...any) {
		m.line(label, format, args...)
		say(label, format, args...)
	})
	last := answer{Done: true}
	if err != nil {
		last.Error = err.Error()
	}
	_ = w.Encode(last)
	cancel()
	watching.Wait()
}

const (
	// startPatience bounds how long status waits for a migration that has just been started, and
	// for its first leader.
	startPatience = 10 * time.Second
	startInterval = 20 * time.Millisecond
)

// report prints the status.
func (m *migration) report(ctx context.Context, say say) {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	st := m.learner.Status()
	for ; st.Leaders == 0 && backoff.Sleep(ctx, startInterval); st = m.learner.Status() {
	}
	if st.Leader == "" {
		say("leader", "none:\n%v", st.Why)
	} else {
		say("leader", "%s, number %d since the start", st.Leader, st.Leaders)
	}
	say("state", "%s", progress(&st))
	say("received", "the whole state %d times, and %d transactions since then, %d of them with a digest", st.Trees, st.Records, st.Compared)
}

// ask runs `gozkd migrate status` and `gozkd migrate finish`.
func (m *migration) ask(ctx context.Context, verb string, args []string) int {
	q := question{Finish: verb == "finish"}
	flags := flag.NewFlagSet(m.Name, flag.ContinueOnError)
	if q.Finish {
		flags.Func("verify-tail", "", func(dir string) error {
			absolute, err := zkdata.Absolute(dir)
			q.Tail = append(q.Tail, absolute)
			return err
		})
		flags.BoolVar(&q.Unverified, "unverified", false, "")
		flags.BoolVar(&q.Stopped, "stopped", false, "")
	}
	words, status, done := m.Parse(flags, args)
	switch {
	case done:
		return status
	case len(words) != 1:
		return m.Misused(fmt.Errorf("%s: name the directory of --into", verb))
	case q.Finish && len(q.Tail) == 0 && !q.Unverified:
		return m.Misused(errors.New("finish: name the directory of each stopped ZooKeeper server with --verify-tail, or say --unverified"))
	}
	if err := m.exchange(ctx, words[0], &q); err != nil {
		return m.Fail(err)
	}
	return cli.OK
}

// dialControl connects to the migration into a directory.
func dialControl(ctx context.Context, into string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for {
		c, err := new(net.Dialer).DialContext(ctx, "unix", controlOf(into))
		if err == nil || !backoff.Sleep(ctx, startInterval) {
			return c, err
		}
	}
}

// exchange sends a question and prints the answer.
func (m *migration) exchange(ctx context.Context, into string, q *question) (err error) {
	if _, err := os.Stat(controlOf(into)); err != nil && backup.CheckEmpty(into) != nil {
		return fmt.Errorf("%s holds data, and no migrate runs: a migration has been finished already", into)
	}
	c, err := dialControl(ctx, into)
	if err != nil {
		return fmt.Errorf("no gozkd migrate into %s runs on this machine: %w", into, err)
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	defer context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })() // ends the reads below
	if err := json.NewEncoder(c).Encode(q); err != nil {
		return err
	}
	for in := json.NewDecoder(c); ; {
		var a answer
		switch err := in.Decode(&a); {
		case ctx.Err() != nil:
			return errors.New("interrupted")
		case err != nil:
			return fmt.Errorf("the migration has ended: %w", err)
		case a.Error != "":
			return errors.New(a.Error)
		case a.Done:
			return nil
		}
		cli.Print(m.Env.Out, a.Line)
	}
}
