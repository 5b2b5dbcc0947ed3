package moving

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/backup"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/zkdata"
	"github.com/gozkd/gozkd/internal/backoff"
)

// question is the JSON that status and finish POST to the socket of a running migration.
type question struct {
	Finish              bool
	Tail                []string
	Unverified, Stopped bool
}

// answer is a line of the reply. An error is the last.
type answer struct {
	Line  string `json:",omitempty"`
	Error string `json:",omitempty"`
}

// maxQuestion bounds a question.
const maxQuestion = 1 << 20

// controlOf returns the socket of the migration into a directory, which is beside the directory,
// because the directory must be empty.
func controlOf(into string) string { return filepath.Clean(into) + ".migrate" }

// listenControl listens on the socket. The socket of a killed migration is replaced.
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

// ServeHTTP answers a question. A client that closes the connection interrupts a finish that waits.
func (m *migration) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q question
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxQuestion)).Decode(&q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	flush := func() { _ = http.NewResponseController(w).Flush() }
	flush() // the client knows from now on that the migration runs
	write := func(a answer) {
		_ = json.NewEncoder(w).Encode(a) // a client that is gone cancels the request
		flush()
	}
	say := func(label, format string, args ...any) { write(answer{Line: cli.Labelled(label, format, args...)}) }
	if !q.Finish {
		m.report(r.Context(), say)
		return
	}
	err := m.finish(r.Context(), &q, func(label, format string, args ...any) {
		m.line(label, format, args...)
		say(label, format, args...)
	})
	if err != nil {
		write(answer{Error: err.Error()})
	}
}

const (
	// startPatience bounds how long status waits for a new migration, and for its first leader.
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
	check := func(words []string) error {
		switch {
		case len(words) != 1:
			return fmt.Errorf("%s: name the directory of --into", verb)
		case q.Finish && len(q.Tail) == 0 && !q.Unverified:
			return errors.New("finish: name the directory of each stopped ZooKeeper server with --verify-tail, or say --unverified")
		}
		return nil
	}
	return m.Do(flags, args, check, func(words []string) error { return m.exchange(ctx, words[0], &q) })
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
	body, err := json.Marshal(q)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://migration", bytes.NewReader(body))
	if err != nil {
		return err
	}
	t := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialControl(ctx, into)
	}}
	defer t.CloseIdleConnections()
	resp, err := t.RoundTrip(req)
	if err != nil {
		return fmt.Errorf("no gozkd migrate into %s runs on this machine: %w", into, err)
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	for in := json.NewDecoder(resp.Body); ; {
		var a answer
		switch err := in.Decode(&a); {
		case errors.Is(err, io.EOF):
			return nil
		case ctx.Err() != nil:
			return errors.New("interrupted")
		case err != nil:
			return fmt.Errorf("the migration has ended: %w", err)
		case a.Error != "":
			return errors.New(a.Error)
		}
		cli.Print(m.Env.Out, a.Line)
	}
}
