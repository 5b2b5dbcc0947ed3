package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"time"
)

// session is a running shell: lines go in, and its output, standard error included, is searched.
type session struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	done  chan struct{} // closed once the process was waited for

	mu      sync.Mutex
	output  strings.Builder
	changed chan struct{} // closed and replaced at each write; capacity 0, it carries no value
}

// startSession starts the shell. The caller ends it with quit or kill.
func startSession(command []string) (*session, error) {
	s := &session{cmd: exec.Command(command[0], command[1:]...), done: make(chan struct{}), changed: make(chan struct{})}
	stdin, err := s.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("shell: %w", err)
	}
	s.stdin = stdin
	s.cmd.Stdout, s.cmd.Stderr = s, s // the same writer: os/exec then writes from a single goroutine
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("shell: %w", err)
	}
	// Ends with the process; quit and kill wait for it.
	go func() {
		_ = s.cmd.Wait() // the output tells more than the exit status
		close(s.done)
	}()
	return s, nil
}

// Write appends the shell's output.
func (s *session) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.output.Write(p)
	close(s.changed)
	s.changed = make(chan struct{})
	return len(p), nil
}

// printed returns the output from offset on, and a channel that closes when there is more.
func (s *session) printed(offset int) (string, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.output.String()[offset:], s.changed
}

// do sends a line and waits until the output since then matches the pattern. An empty line sends
// nothing, for output that comes by itself. An empty pattern waits for nothing.
func (s *session) do(ctx context.Context, line, pattern string) error {
	re, err := regexp.Compile("(?ms)" + pattern)
	if err != nil {
		return fmt.Errorf("shell: %w", err)
	}
	all, _ := s.printed(0)
	offset := len(all)
	if line == "" {
		offset = strings.LastIndex(all, "\n") + 1
	} else if _, err := io.WriteString(s.stdin, line+"\n"); err != nil {
		return fmt.Errorf("%q: %w", line, err)
	}
	for {
		out, more := s.printed(offset)
		if pattern == "" || re.MatchString(out) {
			return nil
		}
		select {
		case <-more:
		case <-s.done:
			// Its last output may precede its end only just.
			if out, _ := s.printed(offset); re.MatchString(out) {
				return nil
			}
			return fmt.Errorf("%q: the shell ended; it printed %q, want %q", line, out, pattern)
		case <-ctx.Done():
			return fmt.Errorf("%q: printed %q, want %q: %w", line, out, pattern, ctx.Err())
		}
	}
}

// quitTimeout is how long a shell may take to end after quit.
const quitTimeout = 10 * time.Second

// quit sends the command that ends the shell and waits for its end.
func (s *session) quit() error {
	_, err := io.WriteString(s.stdin, "quit\n")
	if err != nil {
		return errors.Join(fmt.Errorf("shell: quit: %w", err), s.kill())
	}
	timer := time.NewTimer(quitTimeout)
	defer timer.Stop()
	select {
	case <-s.done:
		return nil
	case <-timer.C:
		return errors.Join(errors.New("shell: did not quit"), s.kill())
	}
}

// kill ends the shell at once.
func (s *session) kill() error {
	err := s.cmd.Process.Kill()
	<-s.done
	return err
}
