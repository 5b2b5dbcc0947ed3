// Command waiters measures thousands of waiters of a client on a lock, on a semaphore and in an
// election: goroutines with package recipes, threads with kazoo and with Curator. Each run has a
// gozkd and a client of its own, each in a process of its own.
//
// Exit status: 1 if package recipes lost a session, or not all of its waiters were served, 2 for
// wrong usage.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/install"
	"github.com/gozkd/gozkd/test/compat/server"
)

func main() { must.Program("waiters", run) }

func run(ctx context.Context, args []string) {
	if len(args) > 0 && args[0] == "play" {
		play(ctx, args[1:])
		return
	}
	flags := flag.NewFlagSet("waiters", flag.ContinueOnError)
	clients := flags.String("client", "recipes,kazoo,curator", "comma-separated clients")
	kinds := flags.String("kind", "lock,semaphore,election", "comma-separated: what is waited for; there are 10 leases")
	waiters := flags.Int("n", 10_000, "how many wait at once, with one session")
	timeout := flags.Duration("timeout", 10*time.Second, "session timeout")
	limit := flags.Duration("limit", 5*time.Minute, "how long a run may take")
	race := flags.Bool("race", false, "recipes under the race detector")
	must.Parsed(flags.Parse(args))
	root := install.Root(ctx)
	dir := must.Get(os.MkdirTemp("", "gozkd-waiters-"))
	defer must.Finally(func() error { return os.RemoveAll(dir) })
	binary := must.Get(server.BuildGozkd(ctx, root, dir))
	fmt.Printf("%d waiters of one client, session timeout %v\n\n", *waiters, *timeout)
	fmt.Println("| client | waits for | served | seconds | sessions lost | reconnects | CPU seconds: client, gozkd |")
	fmt.Println("|---|---|---|---|---|---|---|")
	var failed []string
	for _, name := range strings.Split(*clients, ",") {
		command := player(ctx, root, dir, name, *race)
		for _, kind := range strings.Split(*kinds, ",") {
			r := measured(ctx, binary, append(command, kind, fmt.Sprint(*waiters),
				fmt.Sprint(timeout.Milliseconds()), fmt.Sprint(limit.Milliseconds())))
			fmt.Printf("| %s | %s | %d | %.1f | %d | %d | %.1f, %.1f |\n",
				name, kind, r.served, r.seconds, r.lost, r.reconnects, r.client.Seconds(), r.server.Seconds())
			if name == "recipes" && (r.lost > 0 || r.served < *waiters) {
				failed = append(failed, kind)
			}
		}
	}
	if len(failed) > 0 {
		must.Failf("recipes: a session was lost, or not all were served: %s", strings.Join(failed, ", "))
	}
}

// player returns the command of a client, without these arguments: the kind, the number of waiters,
// the session timeout and the limit in milliseconds, and the address of the server. The last line
// of the client's output has the numbers of waiters served, of sessions lost, of reconnects, and of
// seconds.
func player(ctx context.Context, root, dir, name string, race bool) []string {
	switch name {
	case "recipes":
		if !race {
			return []string{must.Get(os.Executable()), "play"}
		}
		build := exec.CommandContext(ctx, "go", "build", "-race", "-o", dir+"/player", "./test/compat/waiters")
		build.Dir, build.Stderr = root, os.Stderr
		must.Do(build.Run())
		return []string{dir + "/player", "play"}
	case "kazoo":
		return []string{install.Kazoo(ctx, root), root + "/test/compat/waiters/waiters.py"}
	case "curator":
		logging := "-Dlogback.configurationFile=" + root + "/test/compat/java/logback.xml"
		return []string{"java", "-Xmx2g", "-Xss256k", logging, "-cp", install.JavaClient(ctx, root), "Waiters"}
	}
	must.Failf("%q is not a client", name)
	return nil
}

// result holds the last line of a client's output, and the processor time of both processes.
type result struct {
	served, lost, reconnects int
	seconds                  float64
	client, server           time.Duration
}

// measured runs a client on a new server.
func measured(ctx context.Context, binary string, command []string) (r result) {
	keys := server.Defaults()
	keys["tickTime"] = "2000"
	p := must.Get(server.StartGozkd(ctx, binary, server.Options{Keys: keys}))
	defer must.Finally(p.Kill)
	cmd := exec.CommandContext(ctx, command[0], append(command[1:], p.Addr())...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	must.Do(cmd.Run())
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	must.Get(fmt.Sscan(lines[len(lines)-1], &r.served, &r.lost, &r.reconnects, &r.seconds))
	r.client = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if err := p.Stop(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		must.Do(err)
	}
	r.server = p.CPU()
	return r
}
