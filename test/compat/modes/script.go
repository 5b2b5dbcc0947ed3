package modes

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// script is a client program that works in stages: it prints its observations and a line with a
// dot, and begins the next stage when it reads a line.
type script struct {
	name string
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Scanner
}

// startScript starts a program, which ends with its standard input, or with ctx.
func startScript(ctx context.Context, name string, command ...string) *script {
	s := &script{name: name, cmd: exec.CommandContext(ctx, command[0], command[1:]...)}
	s.cmd.Stderr = os.Stderr
	s.in = must.Get(s.cmd.StdinPipe())
	s.out = bufio.NewScanner(must.Get(s.cmd.StdoutPipe()))
	must.Do(s.cmd.Start())
	return s
}

// stage lets the program do its next stage, and returns its lines.
func (s *script) stage() (lines []string) {
	must.Get(io.WriteString(s.in, "\n"))
	for s.out.Scan() {
		if s.out.Text() == "." {
			return lines
		}
		lines = append(lines, s.name+": "+s.out.Text())
	}
	must.Failf("%s ended early: %w\n%s", s.name, errors.Join(s.out.Err(), s.cmd.Wait()), strings.Join(lines, "\n"))
	return nil
}

func (s *script) end() {
	must.Do(s.in.Close())
	if err := s.cmd.Wait(); err != nil {
		must.Do(fmt.Errorf("%s: %w", s.name, err))
	}
}
