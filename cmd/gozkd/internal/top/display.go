package top

import (
	"cmp"
	"context"
	"errors"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
)

// frame is the time between two looks at the terminal's size, and between two changes of the
// screen.
const frame = 40 * time.Millisecond

// Sequences that begin and end the use of the whole screen. Lines do not wrap: a terminal may show
// a character wider than ansi.StringWidth says.
var (
	enterScreen = ansi.SetModeAltScreenSaveCursor + ansi.HideCursor + ansi.ResetModeAutoWrap + ansi.SetWindowTitle("gozkd top")
	leaveScreen = ansi.SetWindowTitle("") + ansi.SetModeAutoWrap + ansi.ShowCursor + ansi.ResetModeAltScreenSaveCursor
)

// display is a terminal in raw mode.
type display struct {
	keys io.Reader
	out  io.Writer
	size func() (width, height int, err error)

	shown   []string // the lines on the screen; nil: unknown
	pending string   // the beginning of a key's sequence
}

// run shows m until a key or ctx ends it.
func (d *display) run(ctx context.Context, m *model, reports <-chan Report) (err error) {
	if _, err := io.WriteString(d.out, enterScreen); err != nil {
		return err
	}
	defer func() {
		_, failed := io.WriteString(d.out, leaveScreen)
		err = errors.Join(err, failed)
	}()
	typed := make(chan string)
	// Ended by the next key after ctx. Nobody awaits it, because a read cannot be interrupted.
	go d.read(ctx, typed)
	tick := time.NewTicker(frame)
	defer tick.Stop()
	for changed := true; ; {
		select {
		case <-ctx.Done():
			return nil
		case r := <-reports:
			m.observe(r)
			changed = true
		case b := <-typed:
			d.pending += b
			if changed = true; d.press(m) {
				return nil
			}
		case <-tick.C:
			if w, h, err := d.size(); err == nil && w > 0 && h > 0 && (w != m.width || h != m.height) {
				m.width, m.height, d.shown, changed = w, h, nil, true
			}
			if !changed {
				continue
			}
			if err := d.draw(m); err != nil {
				return err
			}
			changed = false
		}
	}
}

// read sends the typed characters until the input or ctx ends.
func (d *display) read(ctx context.Context, typed chan<- string) {
	for {
		b := make([]byte, 256)
		n, err := d.keys.Read(b)
		select {
		case typed <- string(b[:n]):
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// press handles the complete keys in pending and reports whether one of them ends the program.
func (d *display) press(m *model) (quits bool) {
	for key := ""; !quits; quits = m.key(key) {
		if key, d.pending = nextKey(d.pending); key == "" {
			return false
		}
	}
	return true
}

// draw writes the lines that have changed.
func (d *display) draw(m *model) error {
	var b strings.Builder
	lines := strings.Split(m.screen(), "\n")
	for i, line := range lines {
		if i < len(d.shown) && d.shown[i] == line {
			continue
		}
		b.WriteString(ansi.CursorPosition(1, i+1) + line)
		if ansi.StringWidth(line) < m.width { // in the last column, the last character would be erased
			b.WriteString(ansi.EraseLineRight)
		}
	}
	d.shown = lines
	if b.Len() == 0 {
		return nil
	}
	_, err := io.WriteString(d.out, ansi.SetModeSynchronizedOutput+b.String()+ansi.ResetModeSynchronizedOutput)
	return err
}

// aKey matches the bytes of a key: an escape sequence, a key with Alt, or a character, also that of
// Escape. Terminals send a sequence at once, so a lone ESC is no beginning of one.
var aKey = regexp.MustCompile(`(?s)^(\x1b\[[^@-~]*[@-~]|\x1bO.|\x1b[^[O]|\x1b$|[^\x1b])`)

// keyNames has the names of keys that are not the character that they send.
var keyNames = map[string]string{
	"\x02": "ctrl+b", "\x03": "ctrl+c", "\x06": "ctrl+f", "\t": "tab", " ": "space",
	"\x1b[Z": "shift+tab", "\x1b[15~": "f5", "\x1b[A": "up", "\x1b[B": "down", "\x1b[5~": "pgup", "\x1b[6~": "pgdown",
	"\x1b[H": "home", "\x1b[1~": "home", "\x1b[7~": "home", "\x1b[F": "end", "\x1b[4~": "end", "\x1b[8~": "end",
}

// nextKey returns the name of the first key in typed, or "" if the rest of its sequence is missing.
func nextKey(typed string) (key, rest string) {
	sent := aKey.FindString(typed)
	key = strings.Replace(sent, "\x1bO", "\x1b[", 1) // in application mode
	return cmp.Or(keyNames[key], key), typed[len(sent):]
}
