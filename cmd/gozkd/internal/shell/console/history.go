package console

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/gozkd/gozkd/internal/vfs"
)

// maxHistory is the number of lines that are kept. The file may grow to twice that meanwhile.
const maxHistory = 1000

// History is the list of previous lines, safe for concurrent use. The zero value has no file.
type History struct {
	mu    sync.Mutex
	lines []string // oldest first
	path  string
	keep  func(line string) bool
}

// LoadHistory reads a history file, which need not exist. Lines that keep rejects are never written
// to the file. Only the owner can read the file; several programs may append to the file.
//
// The History is always usable: after an error it has the lines that were read, and no file.
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
	if n := len(h.lines); n > 2*maxHistory {
		h.lines = h.lines[n-maxHistory:]
		if err := rewrite(path, h.lines); err != nil {
			return h, fmt.Errorf("console: history: %w", err)
		}
	}
	h.path = path
	return h, nil
}

func rewrite(path string, lines []string) error {
	return vfs.WriteWhole(path, filepath.Base(path)+".*", func(f *os.File) error {
		_, err := f.WriteString(strings.Join(lines, "\n") + "\n")
		return err
	})
}

// Record appends a line to the History and to the file. Empty lines and repetitions of the previous
// line are ignored. After an error the file is no longer used.
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
	return errors.Join(err, f.Chmod(0o600), f.Close()) // an existing file may be readable by others
}

// Add implements term.History, and does nothing: the caller of ReadLine Records lines.
func (h *History) Add(string) {}

// Len returns the number of lines.
func (h *History) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.lines)
}

// At returns a line; 0 is the newest. It panics if i is out of range.
func (h *History) At(i int) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lines[len(h.lines)-1-i]
}
