//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The commands of docs/guide/rest.md succeed as they are written.
func TestGuide_REST(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("the commands of docs/guide/rest.md need curl, which is not installed: ", err)
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "guide", "rest.md"))
	if err != nil {
		t.Fatal(err)
	}
	p := launch(t, "--memory", "--client-port", "0", "-o", "admin.serverPort=0", "-o", "gozkd.web=write")
	address := strings.TrimSuffix(p.ports.Admin, "/commands")
	commands := 0
	for _, line := range strings.Split(string(page), "\n") {
		arguments, ok := strings.CutPrefix(line, "curl ")
		if !ok {
			continue
		}
		commands++
		// NB: --fail makes the status of an answer that of the command.
		script := "curl -sS --fail --max-time 30 " + strings.ReplaceAll(arguments, "http://127.0.0.1:8080", address)
		if out, err := exec.CommandContext(t.Context(), "sh", "-c", script).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", line, err, out)
		}
	}
	if commands < 12 {
		t.Errorf("only %d commands in the page", commands)
	}
}
