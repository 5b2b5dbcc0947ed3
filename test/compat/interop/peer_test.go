//go:build unix

package interop

import (
	"os/exec"
	"testing"

	"go.uber.org/goleak"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(watchdog.Watch(m)) }

// TestPeer_StopKills: a peer that goes on without its standard input is reported and killed.
func TestPeer_StopKills(t *testing.T) {
	p := &peer{lang: "sleep", cmd: exec.CommandContext(t.Context(), "sleep", "1000"), gone: make(chan struct{})}
	p.stdin = must.Get(p.cmd.StdinPipe())
	out := must.Get(p.cmd.StdoutPipe())
	must.Do(p.cmd.Start())
	go p.read(out) // ends with the process
	if err := p.stopWithin(0); err == nil {
		t.Error("stop reports nothing")
	}
	select {
	case <-p.gone:
	default:
		t.Error("the peer goes on")
	}
}
