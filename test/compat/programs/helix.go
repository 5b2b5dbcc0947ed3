package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/server"
)

func installHelix(ctx context.Context, root string) (string, func(context.Context, *world) string) {
	h := &helix{javaProgram: installMaven(ctx, root, "helix", "helix-core")}
	h.flags = []string{"-Dzk.session.timeout=6000"}
	return h.version, h.check
}

// helix is a cluster of two controllers and four participants. Each partition has a master and a
// slave.
type helix struct {
	javaProgram
	*world
	masters masterships
}

// check kills the ensemble's leader, then a participant, then the active controller, and expects
// after each that all partitions have a master and a slave on living participants.
func (h *helix) check(ctx context.Context, w *world) string {
	const participants, partitions = 4, 12
	h.world, h.masters = w, nil
	h.client(ctx, "setup", strconv.Itoa(participants))
	running := make(map[string]*server.Process)
	for i := range participants {
		name := fmt.Sprintf("participant-%d", i)
		running[name] = w.start(name, h.command(w, "HelixClient", "participant", w.connect(","), name))
	}
	controllers := make(map[string]*server.Process)
	for i := range 2 {
		name := fmt.Sprintf("controller-%d", i)
		controllers[name] = w.start(name, h.command(w, "org.apache.helix.controller.HelixControllerMain",
			"--zkSvr", w.connect(","), "--cluster", "cluster", "--mode", "STANDALONE", "--controllerName", name))
	}
	h.client(ctx, "resource", "first")
	h.awaitBalance(ctx, partitions, participants)
	w.killLeader(ctx)
	h.client(ctx, "resource", "second")
	h.awaitBalance(ctx, 2*partitions, participants)
	w.returnLeader(ctx)

	const victim = "participant-0"
	must.Do(running[victim].Kill())
	h.masters.ended(victim, running[victim].Log(), time.Now())
	controller := h.awaitBalance(ctx, 2*partitions, participants-1)
	must.Do(controllers[controller].Kill())
	running[victim] = w.start(victim+"-again", h.command(w, "HelixClient", "participant", w.connect(","), victim))
	h.client(ctx, "resource", "third")
	if again := h.awaitBalance(ctx, 3*partitions, participants); again == controller {
		must.Failf("%s, which was killed, is still the controller", controller)
	}
	w.awaitCard(ctx, "Helix", fmt.Sprintf("%d of %[1]d instances live", participants), "3 resources")
	for name, p := range running {
		h.masters.ended(name, p.Log(), time.UnixMilli(math.MaxInt64))
	}
	must.Do(oneMaster(h.masters))
	return fmt.Sprintf("%d partitions, %d times a master, never two", 3*partitions, len(h.masters))
}

// client runs a command of HelixClient and returns its output.
func (h *helix) client(ctx context.Context, command string, args ...string) string {
	return h.ask(ctx, command, h.command(h.world, "HelixClient", append([]string{command, h.connect(",")}, args...)...))
}

// awaitBalance waits until so many participants are alive and the partitions are balanced, and
// returns the name of the controller.
func (h *helix) awaitBalance(ctx context.Context, partitions, participants int) (controller string) {
	h.await(ctx, fmt.Sprintf("%d partitions on %d participants", partitions, participants), func() error {
		view := h.client(ctx, "view")
		if alive := values(view, "alive"); len(alive) != participants {
			return fmt.Errorf("alive are %s", alive)
		}
		controller = strings.Join(values(view, "controller"), ",")
		return balanced(view, partitions)
	})
	return controller
}

// balanced returns an error unless each partition in the view has a master and a slave, on
// participants that are alive.
func balanced(view string, partitions int) error {
	states := make(map[string][]string)
	alive := values(view, "alive")
	for _, replica := range values(view, "replica") {
		f := strings.Fields(replica)
		if !slices.Contains(alive, f[1]) {
			return fmt.Errorf("%s is %s on %s, which is not alive", f[0], f[2], f[1])
		}
		states[f[0]] = append(states[f[0]], f[2])
	}
	if len(states) != partitions {
		return fmt.Errorf("%d partitions have replicas", len(states))
	}
	for partition, list := range states {
		if slices.Sort(list); !slices.Equal(list, []string{"MASTER", "SLAVE"}) {
			return fmt.Errorf("the replicas of %s are %s", partition, list)
		}
	}
	return nil
}
