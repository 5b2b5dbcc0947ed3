package console

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func noSecrets(line string) bool { return !strings.HasPrefix(line, "secret") }

func TestHistory_File(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "gozkd", "history")
	h := load(t, path)
	other := load(t, path) // of a concurrent shell
	for _, line := range []string{"ls /", "secret x", "", "get /a", "get /a"} {
		record(t, h, line)
	}
	record(t, other, "stat /b")
	if got := fmt.Sprint(lines(h)); got != "[get /a secret x ls /]" {
		t.Errorf("the history is %s", got)
	}
	if got := fmt.Sprint(lines(load(t, path))); got != "[stat /b get /a ls /]" {
		t.Errorf("the history after a restart is %s", got)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("the file's mode is %v", info.Mode())
	}
}

func TestHistory_Cut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	var text strings.Builder
	for i := range 2*maxHistory + 1 {
		fmt.Fprintf(&text, "get /%d\n", i)
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		h := load(t, path)
		if h.Len() != maxHistory || h.At(0) != fmt.Sprintf("get /%d", 2*maxHistory) {
			t.Errorf("%d lines, the newest %q", h.Len(), h.At(0))
		}
	}
}

func TestHistory_WithoutFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := LoadHistory(filepath.Join(file, "history"), noSecrets)
	if err == nil {
		t.Fatal("a history below a file")
	}
	record(t, h, "ls /")
	if got := fmt.Sprint(lines(h)); got != "[ls /]" {
		t.Errorf("the history is %s", got)
	}
}

func load(t *testing.T, path string) *History {
	t.Helper()
	h, err := LoadHistory(path, noSecrets)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func record(t *testing.T, h *History, line string) {
	t.Helper()
	if err := h.Record(line); err != nil {
		t.Fatal(err)
	}
}

// lines returns the history, newest first.
func lines(h *History) []string {
	var all []string
	for i := range h.Len() {
		all = append(all, h.At(i))
	}
	return all
}
