package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/cases"
	"github.com/gozkd/gozkd/test/compat/server"
)

// session is a running shell: lines go in, and its output, standard error included, is searched.
type session struct {
	*server.Process
	stdin io.WriteCloser
}

// startSession starts the shell, whose output goes to a file in dir. The caller ends it with quit
// or Kill.
func startSession(command []string, dir string) *session {
	cmd := exec.Command(command[0], command[1:]...)
	stdin := must.Get(cmd.StdinPipe())
	return &session{server.Start(filepath.Base(command[0]), cmd, filepath.Join(dir, "output")), stdin}
}

// do sends a line and waits until the output since then matches the pattern. An empty line sends
// nothing, for output that comes by itself. An empty pattern waits for nothing.
func (s *session) do(ctx context.Context, line, pattern string) {
	re := regexp.MustCompile("(?ms)" + pattern)
	before := s.Log()
	offset := len(before)
	if line == "" {
		offset = strings.LastIndex(before, "\n") + 1
	} else {
		must.Get(io.WriteString(s.stdin, line+"\n"))
	}
	must.Await(ctx, cases.Timeout, fmt.Sprintf("the answer to %q", line), func() error {
		ended := !s.Running()
		out := s.Log()[offset:]
		switch {
		case re.MatchString(out):
			return nil
		case ended:
			must.Failf("%q: the shell ended; it printed %q, want %q", line, out, pattern)
		}
		return fmt.Errorf("it printed %q, want %q", out, pattern)
	})
}

// quitTimeout is how long a shell may take to end after quit.
const quitTimeout = 10 * time.Second

// quit sends the command that ends the shell and waits for its end.
func (s *session) quit() {
	must.Get(io.WriteString(s.stdin, "quit\n"))
	select {
	case <-s.Done():
	case <-time.After(quitTimeout):
		must.Do(errors.Join(errors.New("the shell did not quit"), s.Kill()))
	}
}
