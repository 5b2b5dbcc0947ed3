//go:build linux

package pty

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

// patience is how long Await waits for the screen, on a machine without other load.
const patience = 10 * time.Second

// Terminal is a pseudo-terminal with a keyboard and a screen.
type Terminal struct {
	t       testing.TB
	keys    *os.File
	program *os.File // as programs have it, so that keys can be read while none has

	mu      sync.Mutex // guards the fields below
	screen  *vt.Emulator
	changed chan struct{} // closed when the screen changes
}

// Open returns a terminal of that size. It is closed with the test.
func Open(t testing.TB, cols, rows int) *Terminal {
	t.Helper()
	keys, program, err := pty.Open()
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	term := &Terminal{t: t, keys: keys, program: program, screen: vt.NewEmulator(cols, rows), changed: make(chan struct{})}
	term.Resize(cols, rows)
	done := make(chan struct{})
	// Stopped by closing keys in the cleanup, which waits for it.
	go func() {
		defer close(done)
		term.look()
	}()
	t.Cleanup(func() {
		_, _ = keys.Close(), program.Close() // keys that nobody has read are dropped
		<-done
	})
	return term
}

// Program opens the program's side of the terminal. It is closed with the test at the latest.
func (t *Terminal) Program() *os.File {
	t.t.Helper()
	f, err := os.OpenFile(t.program.Name(), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.t.Fatal(err)
	}
	t.t.Cleanup(func() { _ = f.Close() }) // may be closed already
	return f
}

// Type sends keys as a keyboard would.
func (t *Terminal) Type(keys string) {
	t.t.Helper()
	if _, err := t.keys.WriteString(keys); err != nil {
		t.t.Fatal(err)
	}
}

// Resize changes the size of the window.
func (t *Terminal) Resize(cols, rows int) {
	t.t.Helper()
	t.mu.Lock()
	t.screen.Resize(cols, rows)
	t.mu.Unlock()
	if err := pty.Setsize(t.keys, &pty.Winsize{Cols: uint16(cols), Rows: uint16(rows)}); err != nil {
		t.t.Fatal(err)
	}
}

// Screen returns the lines on the screen and those that were scrolled away, without trailing blanks
// and trailing empty lines.
func (t *Terminal) Screen() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lines()
}

// lines is Screen. The caller holds mu.
func (t *Terminal) lines() string {
	var all []string
	for _, line := range t.screen.Scrollback().Lines() {
		all = append(all, line.String())
	}
	all = append(all, strings.Split(t.screen.String(), "\n")...)
	for i, line := range all {
		all[i] = strings.TrimRight(line, " ")
	}
	return strings.TrimRight(strings.Join(all, "\n"), "\n")
}

// Await waits until the last lines of the screen are these and the cursor is in the last of them or
// below. Otherwise it fails the test with the screen.
func (t *Terminal) Await(lines ...string) {
	t.t.Helper()
	want := strings.Join(lines, "\n")
	t.AwaitFunc(fmt.Sprintf("to end in\n%s", want), func(screen string) bool {
		return screen == want || strings.HasSuffix(screen, "\n"+want)
	})
}

// AwaitFunc waits until ok holds for the screen.
func (t *Terminal) AwaitFunc(what string, ok func(screen string) bool) {
	t.t.Helper()
	late := watchdog.After(t.t, patience)
	for {
		t.mu.Lock()
		screen, changed := t.lines(), t.changed
		t.mu.Unlock()
		if ok(screen) {
			return
		}
		select {
		case <-changed:
		case <-late:
			t.t.Fatalf("the screen was\n%s\n--- and had %s", screen, what)
		}
	}
}

// Cooked reports whether the terminal edits lines itself and turns Ctrl-C into a signal, as a shell
// leaves it.
func (t *Terminal) Cooked() bool {
	t.t.Helper()
	mode, err := unix.IoctlGetTermios(int(t.program.Fd()), unix.TCGETS)
	if err != nil {
		t.t.Fatal(err)
	}
	return mode.Lflag&(unix.ICANON|unix.ISIG|unix.ECHO) == unix.ICANON|unix.ISIG|unix.ECHO && mode.Oflag&unix.OPOST != 0
}

// look draws the output of programs until the terminal is closed.
func (t *Terminal) look() {
	buf := make([]byte, 4096)
	for {
		n, err := t.keys.Read(buf)
		if n > 0 {
			t.mu.Lock()
			_, _ = t.screen.Write(buf[:n]) // to memory
			close(t.changed)
			t.changed = make(chan struct{})
			t.mu.Unlock()
			continue
		}
		if err != nil { // closed
			return
		}
	}
}
