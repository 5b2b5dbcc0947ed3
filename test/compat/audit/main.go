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
	"github.com/gozkd/gozkd/test/compat/cases"
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
	if *only != "all" {
		name := map[string]string{"zookeeper": server.ZooKeeper39, "gozkd": server.Gozkd}[*only]
		kind := server.KindNamed(ctx, name, *binary, work)
		fmt.Println(strings.Join(playedAlone(ctx, &kind, work), "\n"))
		return
	}
	var alone [][]string
	var members [][][]string
	for _, k := range server.Twins(ctx, *binary, work) {
		alone = append(alone, playedAlone(ctx, &k, work))
		e, err := k.StartEnsemble(ctx, server.EnsembleOptions{Members: 3, Keys: ensembleKeys(), Audit: true})
		members = append(members, playedOnEnsemble(ctx, e, err))
	}
	lines := len(alone[0])
	differ, _ := cases.Compare(alone[0], alone[1], *show, nil)
	for i, want := range members[0] {
		fmt.Printf("%s of an ensemble\n", []string{"leader", "follower", "follower"}[i])
		more, _ := cases.Compare(want, members[1][i], *show, nil)
		lines, differ = lines+len(want), differ+more
	}
	if differ > 0 {
		must.Failf("%d lines differ", differ)
	}
	fmt.Printf("%d lines, all equal\n", lines)
}

// playedAlone plays the script on a standalone server, stops it, and returns its audit log.
func playedAlone(ctx context.Context, k *server.Kind, work string) []string {
	opts := server.Options{Keys: auditKeys(), AuditLog: filepath.Join(work, k.Name+".log")}
	if k.Name == server.Gozkd {
		opts.Keys["gozkd.audit.format"], opts.Keys["gozkd.audit.file"] = "zookeeper", opts.AuditLog
	}
	p := must.Get(k.Start(ctx, opts))
	err := must.Try(func() { play(p.Addr()) })
	output := p.Log()
	stopErr := p.Stop()
	if err != nil {
		must.Failf("%s: %w\n%s", p.Name(), err, output)
	}
	must.Do(stopErr)
	return normalized(string(must.Get(os.ReadFile(opts.AuditLog))))
}

func auditKeys() map[string]string {
	keys := server.Defaults()
	keys["audit.enable"], keys["enforceQuota"] = "true", "true"
	return keys
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
