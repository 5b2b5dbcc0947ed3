package server

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestProcess_SignalAfterTheEndIsNoError(t *testing.T) {
	var none *Process
	if none.Running() {
		t.Error("no process runs")
	}
	p := Start("sleep", exec.Command("sh", "-c", "exec sleep 1000"), filepath.Join(t.TempDir(), "log"))
	if !p.Running() {
		t.Errorf("it has ended: %s", p.Log())
	}
	for range 2 {
		if err := p.Signal(os.Kill); err != nil {
			t.Error(err)
		}
		<-p.Done()
		if p.Running() {
			t.Error("it runs after its end")
		}
	}
}
