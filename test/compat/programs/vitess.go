package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/install"
)

func installVitess(ctx context.Context, root string) (string, func(context.Context, *world) string) {
	const version = "0.24.4"
	v := &vitess{program: install.GoProgram(ctx, root, "vitess.io/vitess v"+version,
		filepath.Join(root, "test", "compat", "programs", "vitess", "vitess_test.go.txt"))}
	return version, v.check
}

// vitess is Vitess' topology service, of which workers lock a shard and change a file.
type vitess struct {
	program string
	*world
}

// check runs Vitess' tests of topology services, and kills the ensemble's leader and then a worker
// while others work.
func (v *vitess) check(ctx context.Context, w *world) string {
	const workers, some = 3, 30
	v.world = w
	suite := v.ask(ctx, "suite", v.command("TestSuite", "suite"))
	passed := strings.Count(suite, ": === check")
	if passed == 0 || !strings.Contains(suite, "--- PASS: TestSuite") {
		must.Failf("suite: %d tests passed\n%s", passed, tail(suite))
	}
	var running []worker
	for i := range workers {
		name := fmt.Sprintf("worker-%d", i)
		running = append(running, w.startWorker(name, v.command("TestWork", name)))
		running[i].more(ctx, w, 1) // the first creates what the others share
	}
	all := func() {
		for _, k := range running {
			k.more(ctx, w, some)
		}
	}
	w.aroundLeader(ctx, all)
	must.Do(running[0].Kill())
	acked := running[0].acked()
	running = running[1:]
	all()
	for _, k := range running {
		acked = append(acked, values(k.end(ctx), "acked")...)
	}
	must.Do(kept(acked, values(v.ask(ctx, "read", v.command("TestRead", "reader")), "got")))
	return fmt.Sprintf("%d tests of its own, %d changes under a lock", passed, len(acked))
}

// command returns the command that runs a test of vitess_test.go.txt.
func (v *vitess) command(test, worker string) *exec.Cmd {
	cmd := exec.Command(v.program, "-test.v", "-test.run", "^"+test+"$")
	cmd.Env = append(os.Environ(), "SERVERS="+v.connect(","), "WORKER="+worker)
	return cmd
}
