package main

import (
	"context"
	_ "embed" // script.txt
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/diff/exchange"
	"github.com/gozkd/gozkd/test/compat/server"
)

//go:embed script.txt
var script string

// patience bounds each wait.
const patience = 20 * time.Second

// play plays the sequence of this name on the servers at these addresses.
func play(ctx context.Context, name string, addrs ...string) (*exchange.Transcript, error) {
	list := must.Get(exchange.ReadScript(script))
	at := slices.IndexFunc(list, func(s *exchange.Sequence) bool { return s.Name == name })
	p := exchange.NewPlayer(addrs...)
	p.ReplyTimeout = patience
	t, err := p.Play(ctx, list[at], exchange.RootTemplate)
	return t, errors.Join(err, p.Close())
}

// playedAlone plays on a standalone server, stops it, and returns its replies and its audit log.
func playedAlone(ctx context.Context, k *server.Kind, work string) (*exchange.Transcript, []string) {
	opts := server.Options{Keys: auditKeys(), AuditLog: filepath.Join(work, k.Name+".log")}
	if k.Name == server.Gozkd {
		opts.Keys["gozkd.audit.format"], opts.Keys["gozkd.audit.file"] = "zookeeper", opts.AuditLog
	}
	p := must.Get(k.Start(ctx, opts))
	t, err := play(ctx, "alone", p.Addr())
	if err == nil {
		_, err = server.FourLetterWord(ctx, p.Addr(), "srst")
	}
	output := p.Log()
	stopErr := p.Stop()
	if err != nil {
		must.Failf("%s: %w\n%s", p.Name(), err, output)
	}
	must.Do(stopErr)
	return t, normalized(string(must.Get(os.ReadFile(opts.AuditLog))))
}

func auditKeys() map[string]string {
	keys := server.Defaults()
	keys["audit.enable"], keys["enforceQuota"] = "true", "true"
	return keys
}

// playedOnEnsemble plays on an ensemble, and returns the replies and the audit logs of the leader
// and of both followers.
func playedOnEnsemble(ctx context.Context, k *server.Kind) (_ *exchange.Transcript, logs [][]string) {
	keys := auditKeys()
	keys["reconfigEnabled"], keys["standaloneEnabled"] = "true", "false"
	e := must.Get(k.StartEnsemble(ctx, server.EnsembleOptions{Members: 3, Keys: keys, Audit: true}))
	defer must.Finally(e.Stop)
	order := []*server.Member{must.Get(e.Leader(ctx))}
	for _, m := range e.Members {
		if m != order[0] {
			order = append(order, m)
		}
	}
	t, err := play(ctx, "ensemble", order[0].Addr(), order[1].Addr(), order[2].Addr())
	if err != nil {
		must.Failf("%s: %w\n%s", e.Name(), err, e.Log())
	}
	for i, m := range order {
		logs = append(logs, normalized(awaitEnd(m.AuditLog(), fmt.Sprintf("/end-%d", i))))
	}
	return t, logs
}

// awaitEnd returns the content of a log that has a line of the znode.
func awaitEnd(log, znode string) string {
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		content, err := os.ReadFile(log)
		if strings.Contains(string(content), "znode="+znode+"\t") {
			return string(content)
		}
		if time.Now().After(end) {
			must.Failf("%s has no %s: %w", log, znode, err)
		}
	}
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
				numbers[id] = fmt.Sprintf("session=%d", len(numbers)+1)
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
