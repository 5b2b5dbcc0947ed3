// Command audit plays a script on ZooKeeper and on gozkd, and compares their audit logs in
// ZooKeeper's format line by line. Lines must be equal except for the numbers of sessions.
//
// Exit status: 1 if the logs differ or a server fails, 2 for wrong usage.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/install"
	"github.com/gozkd/gozkd/test/compat/server"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := must.Main("audit", flag.ErrHelp, func() { run(ctx, os.Args[1:]) })
	stop()
	os.Exit(status)
}

func run(ctx context.Context, args []string) {
	flags := flag.NewFlagSet("audit", flag.ContinueOnError)
	binary := flags.String("gozkd", "", "the gozkd to test (default: build cmd/gozkd)")
	show := flags.Bool("v", false, "print the lines of both servers")
	only := flags.String("server", "all", "zookeeper or gozkd: print the lines of this server and end")
	must.Parsed(flags.Parse(args))
	work := must.Get(os.MkdirTemp("", "gozkd-audit-"))
	defer must.Finally(func() error { return os.RemoveAll(work) })
	if *binary == "" && *only != "zookeeper" {
		*binary = must.Get(server.BuildGozkd(ctx, install.Root(ctx), work))
	}
	var want, got []string
	if *only != "gozkd" {
		want = zooKeeper(ctx, work)
	}
	if *only != "zookeeper" {
		got = gozkd(ctx, *binary, work)
	}
	if *only != "all" {
		fmt.Println(strings.Join(slices.Concat(want, got), "\n"))
		return
	}
	lines, differ := len(want), compare(want, got, *show)
	o := server.EnsembleOptions{Members: 3, Keys: ensembleKeys(), Audit: true}
	e, err := server.StartZooKeeperEnsemble(ctx, server.Maven, o)
	wants := playedOnEnsemble(ctx, e, err)
	e, err = server.StartGozkdEnsemble(ctx, *binary, o)
	for i, got := range playedOnEnsemble(ctx, e, err) {
		fmt.Printf("%s of an ensemble\n", []string{"leader", "follower", "follower"}[i])
		lines += len(wants[i])
		differ += compare(wants[i], got, *show)
	}
	if differ > 0 {
		must.Failf("%d lines differ", differ)
	}
	fmt.Printf("%d lines, all equal\n", lines)
}

func zooKeeper(ctx context.Context, work string) []string {
	log := filepath.Join(work, "zookeeper.log")
	keys := auditKeys()
	p := must.Get(server.StartZooKeeper(ctx, server.Maven, server.Options{Keys: keys, AuditLog: log}))
	return played(p, log)
}

func gozkd(ctx context.Context, binary, work string) []string {
	log := filepath.Join(work, "gozkd.log")
	keys := auditKeys()
	keys["gozkd.audit.format"], keys["gozkd.audit.file"] = "zookeeper", log
	p := must.Get(server.StartGozkd(ctx, binary, server.Options{Keys: keys}))
	return played(p, log)
}

func auditKeys() map[string]string {
	keys := server.Defaults()
	keys["audit.enable"], keys["enforceQuota"] = "true", "true"
	return keys
}

// played plays the script on a server, stops it, and returns its audit log.
func played(p *server.Process, log string) []string {
	err := must.Try(func() { play(p.Addr()) })
	output := p.Log()
	stopErr := p.Stop()
	if err != nil {
		must.Failf("%s: %w\n%s", p.Name(), err, output)
	}
	must.Do(stopErr)
	return normalized(string(must.Get(os.ReadFile(log))))
}

var (
	sessionID = regexp.MustCompile(`session=0x[0-9a-f]+`)
	lineTime  = regexp.MustCompile(`^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} `)
)

// normalized numbers the sessions in the order in which they occur, and sorts lines of ephemeral
// znodes that follow each other: ZooKeeper deletes the znodes of a session in no particular order.
func normalized(log string) (lines []string) {
	numbers := make(map[string]string)
	for line := range strings.Lines(log) {
		line = lineTime.ReplaceAllString(line, "TIME ")
		lines = append(lines, sessionID.ReplaceAllStringFunc(strings.TrimSuffix(line, "\n"), func(id string) string {
			if numbers[id] == "" {
				numbers[id] = text("session=%d", len(numbers)+1)
			}
			return numbers[id]
		}))
	}
	isEphemeral := func(line string) bool {
		return strings.Contains(line, "\toperation=ephemeralZNodeDeletionOnSessionCloseOrExpire\t")
	}
	for i := 0; i < len(lines); i++ {
		j := i
		for j < len(lines) && isEphemeral(lines[j]) {
			j++
		}
		if j > i {
			slices.Sort(lines[i:j])
			i = j - 1
		}
	}
	return lines
}

// compare prints the lines that differ, and returns their number.
func compare(want, got []string, show bool) (differ int) {
	for i := range max(len(want), len(got)) {
		w, g := at(want, i), at(got, i)
		switch {
		case w == g && show:
			fmt.Printf("%3d    %s\n", i+1, w)
		case w != g:
			differ++
			fmt.Printf("%3d ZK %s\n    go %s\n", i+1, w, g)
		}
	}
	return differ
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}
