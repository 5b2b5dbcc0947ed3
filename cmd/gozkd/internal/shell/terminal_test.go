//go:build linux

package shell

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/pty"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/zktest"
)

// seat is a user at a gozkd cli.
type seat struct {
	*pty.Terminal
	t     *testing.T
	shell *exec.Cmd
}

// sit starts a shell in its own terminal and waits for the prompt "[zk: HOST(CONNECTED) 0] ".
func sit(t *testing.T, home, server string, env ...string) *seat {
	t.Helper()
	s := sitDown(t, home, server, env...)
	s.AwaitFunc("a prompt behind the event of the connection", func(screen string) bool {
		return strings.HasSuffix(screen, "(CONNECTED) 0]") && strings.Contains(screen, "state:SyncConnected type:None")
	})
	return s
}

// sitDown is sit without waiting for the prompt.
func sitDown(t *testing.T, home, server string, env ...string) *seat {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := &seat{Terminal: pty.Open(t, 100, 40), t: t, shell: exec.Command(self, "-server", server)}
	files := s.Program()
	s.shell.Stdin, s.shell.Stdout, s.shell.Stderr = files, files, files
	s.shell.Env = append([]string{asProgram + "=1", "HOME=" + home, "PATH=" + os.Getenv("PATH"), "TERM=xterm", "TZ=UTC"}, env...)
	s.shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true} // Ctrl-C must reach the shell, not the test
	if err := s.shell.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if s.shell.ProcessState == nil {
			_ = s.shell.Process.Kill() // the test has failed
			_ = s.shell.Wait()
		}
	})
	return s
}

// leave waits for the end of the shell.
func (s *seat) leave(status int) {
	s.t.Helper()
	_ = s.shell.Wait() // the status is checked below
	if got := s.shell.ProcessState.ExitCode(); got != status {
		s.t.Errorf("exit status %d, want %d; the screen is\n%s", got, status, s.Screen())
	}
	if !s.Cooked() {
		s.t.Error("the terminal was left raw")
	}
}

func TestInteractive(t *testing.T) {
	server := zktest.Start(t)
	home := t.TempDir()
	at := server.ConnectString()
	prompt := func(n string) string { return "[zk: " + at + "(CONNECTED) " + n + "]" }
	s := sit(t, home, at)

	s.Type("cre\t/app hello\r")
	s.Await(prompt("0")+" create /app hello", "Created /app", prompt("1"))
	s.Type("create \"/app/a b\" x\r")
	s.Await("Created /app/a b", prompt("2"))
	s.Type("create /app/other y\raddauth digest me:secret\raddWatch /app\r") // in one write
	s.Await("Created /app/other", prompt("3")+" addauth digest me:secret", prompt("4")+" addWatch /app", prompt("5"))

	s.Type("get /a\t")
	s.Await(prompt("5") + " get /app/")
	s.Type("\t")
	s.Await("a b    other", prompt("5")+" get /app/")
	// An event arrives while a line is being typed.
	if r := runCLI(t, "", nil, "-server", at, "set", "/app", "changed"); r.status != 0 {
		t.Fatal(r)
	}
	s.AwaitFunc("an event above the line", func(screen string) bool {
		_, behind, ok := strings.Cut(screen, "type:NodeDataChanged path:/app zxid:")
		return ok && strings.HasSuffix(behind, "\n"+prompt("5")+" get /app/") && strings.Count(screen, prompt("5")) == 1
	})
	s.Type("a\t\r")
	s.Await(prompt("5")+` get "/app/a b"`, "x", prompt("6"))

	s.Type("delete /app/other\x1b[D\x03") // discarded
	s.Await(prompt("6")+" delete /app/other^C", prompt("6"))
	s.Type("ls /app\r")
	s.Await("[a b, other]", prompt("7"))

	s.Type("watch /app\r")
	s.AwaitFunc("a watch", func(screen string) bool { return strings.HasSuffix(screen, "Z Watching /app") })
	s.Type("\x03")
	s.Await("^C", prompt("8"))

	s.Type("\x1b[A\x1b[A\r") // the line before the last one
	s.Await(prompt("8")+" ls /app", "[a b, other]", prompt("9"))
	s.Type("redo 0\r")
	s.Await("Node already exists: /app", prompt("10"))
	s.Type("\x04")
	s.leave(1) // of the last command

	path := filepath.Join(home, ".gozkd_history")
	kept, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := "create /app hello\ncreate \"/app/a b\" x\ncreate /app/other y\naddWatch /app\nget \"/app/a b\"\nls /app\nwatch /app\nls /app\nredo 0\n"
	if string(kept) != want {
		t.Errorf("the history file has\n%swant\n%s", kept, want)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the history file: %v, %v", info.Mode(), err)
	}

	again := sit(t, home, at)
	again.Type("app/a\x12") // found in the history
	again.Await(prompt("0") + ` get "/app/a b"`)
	again.Type("\r")
	again.Await("x", prompt("1"))
	again.Type("quit\r")
	again.leave(0)
}

// Tab goes on after a znode with children with a slash, and Enter takes the path. exit ends the
// shell. A script gets ZooKeeper's error, as zkCli.sh gives it.
func TestInteractive_CompletedPath(t *testing.T) {
	server := zktest.Start(t)
	at := server.ConnectString()
	s := sit(t, t.TempDir(), at)
	s.Type("create /load x\rcreate /load/a y\r")
	s.Await("Created /load/a", "[zk: "+at+"(CONNECTED) 2]")
	s.Type("ls /lo\t")
	s.Await("[zk: " + at + "(CONNECTED) 2] ls /load/")
	s.Type("\r")
	s.Await("[a]", "[zk: "+at+"(CONNECTED) 3]")
	s.Type("set /load/ /b/\r")
	s.Await("[zk: " + at + "(CONNECTED) 4]")
	s.Type("get /load/\r")
	s.Await("/b/", "[zk: "+at+"(CONNECTED) 5]")
	s.Type("create -s /load/ z\r")
	s.Await("Created /load/0000000001", "[zk: "+at+"(CONNECTED) 6]")
	s.Type("exit\r")
	s.leave(0)
	for line, want := range map[string]string{"ls /load/\n": "must not end with / character", "exit\nls /load/\n": ""} {
		_, _, errs := onServer(t, at, line)
		if !strings.Contains(errs, want) || want == "" && errs != "" {
			t.Errorf("%q: %q, want %q", line, errs, want)
		}
	}
}

func TestInteractive_Edit(t *testing.T) {
	server := zktest.Start(t)
	at := server.ConnectString()
	s := sit(t, t.TempDir(), at, "EDITOR=echo editing; cat > /dev/null; printf edited >")
	s.Type("create /x one\redit /x\r")
	s.Await("editing")
	s.Type("what is typed is the editor's\n\x04")
	s.Await("/x now has version 1", "[zk: "+at+"(CONNECTED) 2]")
	s.Type("get /x\r")
	s.Await("edited", "[zk: "+at+"(CONNECTED) 3]")
	s.Type("\x04")
	s.leave(0)
}

func TestInteractive_ConnectionLost(t *testing.T) {
	server := zktest.Start(t)
	at := server.ConnectString()
	s := sit(t, t.TempDir(), at)
	s.Type("half a l")
	s.Await("[zk: " + at + "(CONNECTED) 0] half a l")
	server.CloseConnections()
	s.AwaitFunc("the line behind the events of both connections", func(screen string) bool {
		return strings.Contains(screen, "state:Disconnected") && strings.Count(screen, "state:SyncConnected") == 2 &&
			strings.HasSuffix(screen, "\n[zk: "+at+"(CONNECTED) 0] half a l")
	})
	s.Type("\x15quit\r")
	s.leave(0)
}

func TestInteractive_Unreachable(t *testing.T) {
	term := pty.Open(t, 100, 10)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := term.Program()
	cmd := exec.Command(self, "-server", "127.0.0.1:1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
	cmd.Env = []string{asProgram + "=1", "HOME=" + t.TempDir()}
	if err := cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("ended with %v", err)
	}
	term.AwaitFunc("the address and the cause", func(screen string) bool {
		return strings.Contains(screen, "127.0.0.1:1: ") && strings.Contains(screen, "connection refused")
	})
}

// Data of others cannot control the terminal, neither at a prompt nor with a single command. A pipe
// gets the bytes unchanged.
func TestInteractive_HostileData(t *testing.T) {
	server := zktest.Start(t)
	at := server.ConnectString()
	const data = "\x1b]0;owned\x07\x1b[31mred"
	if got := runCLI(t, "", nil, "-server", at, "create", "/esc", data); got.err != "Created /esc\n" {
		t.Fatal(got)
	}
	runOne(t, at, "get /esc", ranCLI{out: data})
	if got := runCLI(t, "", nil, "-server", at, "create", "/esc/\u202Efdp", ""); got.status != 0 {
		t.Fatal(got)
	}
	s := sit(t, t.TempDir(), at)
	prompt := func(n string) string { return "[zk: " + at + "(CONNECTED) " + n + "]" }
	s.Type("get /esc\r")
	s.Await(`\u001b]0;owned\u0007\u001b[31mred`, prompt("1"))
	s.Type("ls /esc\r")
	s.Await(`[\u202efdp]`, prompt("2"))
	s.Type("get /esc/\t\tnone\r")
	s.Await("Node does not exist: /esc/none", prompt("3"))
	s.Type("quit\r")
	s.leave(1) // of the last command before quit

	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	terminal := pty.Open(t, 100, 40)
	one := exec.Command(self, "-server", at, "get", "/esc")
	one.Stdout, one.Env = terminal.Program(), []string{asProgram + "=1"}
	if err := one.Run(); err != nil {
		t.Fatal(err)
	}
	terminal.Await(`\u001b]0;owned\u0007\u001b[31mred`)
}

// Ctrl-C interrupts waiting for a server that does not answer.
func TestInteractive_InterruptedBeforeTheSession(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections but never answers
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := silent.Close(); err != nil {
			t.Error(err)
		}
	}()
	s := sitDown(t, t.TempDir(), silent.Addr().String())
	s.Await("Connecting to " + silent.Addr().String())
	s.Type("\x03")
	s.AwaitFunc("what ended the wait", func(screen string) bool { return strings.HasSuffix(screen, "gozkd cli: Interrupted") })
	s.leave(1)
}

// A Ctrl-C after the end of a line interrupts the command. A Ctrl-C for the previous command does
// not.
func TestTerminalReader_InterruptedEarly(t *testing.T) {
	home := t.TempDir()
	term := pty.Open(t, 100, 10)
	files := term.Program()
	interrupts := make(chan os.Signal, 1)
	p := newTerminalReader(cli.Env{
		In: files, Out: files, Getenv: func(string) string { return home },
		Interrupts: func() (<-chan os.Signal, func()) { return interrupts, func() {} },
	}, nil)
	for _, line := range []string{"the first session", "a command"} {
		interrupts <- os.Interrupt
		command, done := p.running(t.Context())
		select {
		case <-command.Done():
		case <-watchdog.After(t, 10*time.Second):
			t.Errorf("%s goes on", line)
		}
		done()
		if !errors.Is(context.Cause(command), errInterrupted) {
			t.Errorf("%s ended with %v", line, context.Cause(command))
		}

		interrupts <- os.Interrupt // too late
		got, err := p.readLine(t.Context(), func() string {
			term.Type("ls /\r") // the terminal is raw by now
			return "> "
		})
		if got != "ls /" || err != nil {
			t.Fatalf("read %q, %v", got, err)
		}
		if len(interrupts) > 0 {
			t.Fatalf("what was meant for %s is kept for the next command", line)
		}
	}
}
