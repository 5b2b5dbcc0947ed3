package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/install"
)

func installTooz(ctx context.Context, root string) (string, func(context.Context, *world) string) {
	sources := filepath.Join(root, "test", "compat", "programs", "tooz")
	requirements := filepath.Join(sources, "requirements.txt")
	z := &tooz{
		python: install.Python(ctx, root, "program-tooz", requirements),
		script: filepath.Join(sources, "client.py"),
	}
	_, version, _ := strings.Cut(strings.Fields(string(must.Get(os.ReadFile(requirements))))[0], "==")
	return version, z.check
}

// tooz is a group of workers that share a lock and elect a leader.
type tooz struct {
	python, script string
	*world
}

// check kills the ensemble's leader and then the elected worker, and expects that the others go on,
// see that worker leave, and elect another one.
func (z *tooz) check(ctx context.Context, w *world) string {
	const workers, some = 3, 30
	z.world = w
	running := make(map[string]worker)
	for i := range workers {
		name := fmt.Sprintf("worker-%d", i)
		running[name] = w.startWorker(name, exec.Command(z.python, z.script, w.connect(","), name))
	}
	all := func(n int) {
		for _, k := range running {
			k.more(ctx, w, n)
		}
	}
	w.aroundLeader(ctx, func() { all(some) })

	var held masterships
	victim := z.elected(ctx, running)
	must.Do(running[victim].Kill())
	held.ended(victim, running[victim].Log(), time.Now())
	acked := len(running[victim].acked())
	delete(running, victim)
	all(some)
	for _, k := range running {
		w.await(ctx, k.Name()+" sees that "+victim+" left", func() error {
			if left := values(k.Log(), "left"); !slices.Contains(left, victim) {
				return fmt.Errorf("%s has seen leave: %s", k.Name(), left)
			}
			return nil
		})
	}
	if again := z.elected(ctx, running); again == victim {
		must.Failf("%s, which was killed, is still elected", victim)
	}
	for name, k := range running {
		acked += len(k.acked())
		held.ended(name, k.end(ctx), time.UnixMilli(math.MaxInt64))
	}
	must.Do(oneMaster(held))
	return fmt.Sprintf("%d times in the lock, never two at once", acked)
}

// elected waits until one of the running workers was elected and not a later one, and returns it.
func (z *tooz) elected(ctx context.Context, running map[string]worker) (name string) {
	z.await(ctx, "an elected worker", func() error {
		name = ""
		for n, k := range running {
			if slices.Contains(values(k.Log(), "elected"), n) {
				if name != "" {
					return fmt.Errorf("%s and %s are elected", name, n)
				}
				name = n
			}
		}
		if name == "" {
			return fmt.Errorf("nobody is elected")
		}
		return nil
	})
	return name
}
