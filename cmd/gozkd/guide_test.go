//go:build unix

package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testca"
	"github.com/gozkd/gozkd/internal/testkit/program"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

// startGuide starts the shell in which the commands of a page run. Its directory has these ones.
// The test then runs beside others: most of the time it waits for processes.
func startGuide(t *testing.T, dirs ...string) *guideShell {
	t.Helper()
	t.Parallel()
	dir := t.TempDir()
	for _, name := range dirs {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	sh := startShell(t, dir, reserveGuidePorts(t))
	sh.writeProgram("gozkd", fmt.Sprintf("exec '%s' \"$@\"\n", self))
	return sh
}

// writeProgram lets the shell find a program, which is a shell script.
func (sh *guideShell) writeProgram(name, script string) {
	sh.t.Helper()
	file := filepath.Join(sh.dir, "bin", name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("#!/bin/sh\n"+script), 0o700)); err != nil {
		sh.t.Fatal(err)
	}
}

// read returns the blocks of a page with free ports.
func (sh *guideShell) read(page string) []guideBlock {
	sh.t.Helper()
	return readGuide(sh.t, page, sh.ports.toFree)
}

// guidePorts maps the ports of a page without their last digit, which is the number of the server,
// to free ones.
type guidePorts map[string]string

var (
	pagePort = regexp.MustCompile(`\b(218|288|388|808|700)([1234@]|\b)`)
	freePort = regexp.MustCompile(`\b(\d{4})([1234])\b`)
)

// reserveGuidePorts finds ports for the servers.
func reserveGuidePorts(t *testing.T) guidePorts {
	t.Helper()
	ports, first := guidePorts{}, reserveRange(t, 49)
	for i, prefix := range []string{"218", "288", "388", "808", "700"} {
		ports[prefix] = strconv.Itoa(first/10 + i)
	}
	return ports
}

func (p guidePorts) toFree(text string) string {
	return pagePort.ReplaceAllStringFunc(text, func(port string) string { return p[port[:3]] + port[3:] })
}

// toPage undoes toFree.
func (p guidePorts) toPage(text string) string {
	return freePort.ReplaceAllStringFunc(text, func(port string) string {
		for page, free := range p {
			if free == port[:4] {
				return page + port[4:]
			}
		}
		return port
	})
}

// config returns the zoo.cfg of server n, given that of server 1.
func (p guidePorts) config(first guideBlock, n int) string {
	number := strconv.Itoa(n)
	var b strings.Builder
	for _, line := range first.lines {
		if !strings.HasPrefix(line, "server.") {
			line = strings.ReplaceAll(line, "zk1/", "zk"+number+"/")
			line = freePort.ReplaceAllString(line, "${1}"+number)
		}
		fmt.Fprintln(&b, line)
	}
	return b.String()
}

// guideShell is one shell that runs all commands, because they use its functions.
type guideShell struct {
	t     *testing.T
	dir   string
	stdin *os.File
	exits chan string // exit status of each command; closed when the shell has ended
	ports guidePorts
}

func startShell(t *testing.T, dir string, ports guidePorts) *guideShell {
	t.Helper()
	in, stdin, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	sh := &guideShell{t: t, dir: dir, stdin: stdin, exits: make(chan string, 1), ports: ports}
	cmd := exec.Command("sh")
	cmd.Dir, cmd.Stdin = dir, in
	cmd.Env = append(program.Command().Env, "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"), "LC_ALL=C")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = in.Close()
	// Ends with the shell, which the cleanup kills and waits for.
	go func() {
		defer close(sh.exits)
		for s := bufio.NewScanner(out); s.Scan(); {
			sh.exits <- s.Text()
		}
	}()
	t.Cleanup(func() {
		if t.Failed() {
			for _, file := range []string{"zk1/log", "zk2/log", "zk3/log", "openssl.log"} {
				content, _ := os.ReadFile(filepath.Join(dir, file))
				t.Logf("%s:\n%s", file, content)
			}
		}
		_, _ = fmt.Fprintln(stdin, "kill -9 $(cat zk?/pid); wait; exit")
		_ = stdin.Close()
		select {
		case <-sh.exits:
		case <-watchdog.After(t, 10*time.Second):
		}
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // also a command that hangs
		for range sh.exits {
		}
		_ = cmd.Wait()
	})
	return sh
}

// define defines the functions of a block, or writes the script that it is, if it is either.
func (sh *guideShell) define(b guideBlock) bool {
	sh.t.Helper()
	switch {
	case b.lines[0] == "#!/bin/sh":
		name, _, _ := strings.Cut(strings.TrimPrefix(b.lines[1], "# "), " ")
		testca.WriteFile(sh.t, filepath.Join(sh.dir, name), []byte(b.text()))
	case strings.Contains(b.lines[0], "() {"):
		sh.run(b.text())
	default:
		return false
	}
	return true
}

// run runs a command, which must succeed, and returns what it prints.
func (sh *guideShell) run(command string) string {
	sh.t.Helper()
	output, status := sh.try(command)
	if status != "0" {
		sh.t.Fatalf("%s\nexit status %s\n%s", command, status, output)
	}
	return output
}

func (sh *guideShell) try(command string) (output, status string) {
	sh.t.Helper()
	// What a server prints later must not reach the pipe.
	if _, err := fmt.Fprintf(sh.stdin, "{ %s\n} < /dev/null > output 2>&1; echo $?\n", command); err != nil {
		sh.t.Fatal(err)
	}
	select {
	case s, ok := <-sh.exits:
		if !ok {
			sh.t.Fatalf("%s\nended the shell", command)
		}
		status = s
	case <-watchdog.After(sh.t, time.Minute):
		sh.t.Fatalf("%s\nhangs", command)
	}
	content, err := os.ReadFile(filepath.Join(sh.dir, "output"))
	if err != nil {
		sh.t.Fatal(err)
	}
	if strings.Contains(string(content), "No such process") { // a process that has ended is for the page to explain
		sh.t.Errorf("%s\nprints\n%s", command, content)
	}
	return string(content), status
}

// check runs a command of the page. A command that prints nothing must succeed. Others are repeated
// until they print what the page shows, because reloads and changed files take effect a little
// later.
func (sh *guideShell) check(c guideCommand) {
	sh.t.Helper()
	name, argument, _ := strings.Cut(c.line, " ")
	switch _, err := exec.LookPath(name); {
	case name == "curl" && err != nil:
		sh.t.Log("left out, because curl is not installed: ", c.line)
		return
	case name == "cat": // shows a file that the reader writes
		testca.WriteFile(sh.t, filepath.Join(sh.dir, argument), []byte(guideBlock{lines: c.want}.text()))
		return
	case len(c.want) == 0:
		if output := sh.run(c.line); output != "" {
			sh.t.Errorf("%s\nprints\n%s", c.line, output)
		}
		return
	}
	want := outputPattern(strings.Split(sh.ports.toPage(strings.Join(c.want, "\n")), "\n"))
	poll := time.NewTicker(100 * time.Millisecond)
	defer poll.Stop()
	late := watchdog.After(sh.t, 30*time.Second)
	for first := true; ; first = false {
		output, status := sh.try(c.line)
		if !first && strings.Contains(output, "Node already exists") {
			return // an earlier attempt created it, and lost its connection before the reply
		}
		got := generalize(strings.TrimSuffix(sh.ports.toPage(output), "\n") + "\n") // a value that is shown need not end a line
		if want.MatchString(got) && (status == "0" || c.want[0] != "…") {           // the page may show a refusal
			return
		}
		select {
		case <-poll.C:
		case <-late:
			sh.t.Fatalf("%s\nprints\n%s\nwant\n%s", c.line, got, want)
		}
	}
}
