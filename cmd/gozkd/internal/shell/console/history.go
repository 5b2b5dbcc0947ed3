package console

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// historyMost is how many lines a history has. A file grows to twice that before it is cut.
const historyMost = 1000

// History is the lines typed before, the newest first. The zero value is an empty one without a file. Safe for concurrent use.
type History struct {
	mu    sync.Mutex
	lines []string // the oldest first
	path  string
	keep  func(line string) bool
}

// LoadHistory reads the history in a file, which need not be there yet. Lines that keep does not want are never written to
// it. The file is its owner's alone to read; several programs may append to it.
//
// A History comes back in any case: with an error it has what could be read, and writes to no file.
func LoadHistory(path string, keep func(line string) bool) (*History, error) {
	h := &History{keep: keep}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err != nil {
		return h, fmt.Errorf("console: history: %w", err)
	}
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimRight(line, "\r\n"); line != "" {
			h.lines = append(h.lines, line)
		}
	}
	if n := len(h.lines); n > 2*historyMost {
		h.lines = h.lines[n-historyMost:]
		if err := rewrite(path, h.lines); err != nil {
			return h, fmt.Errorf("console: history: %w", err)
		}
	}
	h.path = path
	return h, nil
}

// rewrite replaces the file, or leaves it as it was.
func rewrite(path string, lines []string) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // 0600
	if err != nil {
		return err
	}
	var text bytes.Buffer
	for _, line := range lines {
		text.WriteString(line + "\n")
	}
	_, err = f.Write(text.Bytes())
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// Record adds the newest line, to the file too. A line that is empty, or the same as the one before, is none. After an
// error the file is left alone.
func (h *History) Record(line string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if line == "" || len(h.lines) > 0 && h.lines[len(h.lines)-1] == line {
		return nil
	}
	h.lines = append(h.lines, line)
	if h.path == "" || !h.keep(line) {
		return nil
	}
	if err := appendLine(h.path, line); err != nil {
		h.path = ""
		return fmt.Errorf("console: history: %w", err)
	}
	return nil
}

func appendLine(path, line string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Chmod(0o600), f.Close()) // someone may have made it before, for all to read
}

// Add does nothing: whoever reads lines decides what is recorded.
func (h *History) Add(string) {}

// Len returns the number of lines.
func (h *History) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.lines)
}

// At returns a line; 0 is the newest. It panics for i < 0 and i >= Len().
func (h *History) At(i int) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lines[len(h.lines)-1-i]
}
