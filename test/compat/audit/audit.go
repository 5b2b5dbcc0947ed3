// Package audit plays script.txt on servers that write audit logs in ZooKeeper's format. The lines
// of both servers must be equal except for the numbers of sessions.
package audit

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
	"github.com/gozkd/gozkd/test/compat/cases"
	"github.com/gozkd/gozkd/test/compat/diff/exchange"
	"github.com/gozkd/gozkd/test/compat/server"
)

//go:embed script.txt
var script string

// patience bounds each wait.
const patience = 20 * time.Second

// Scripts are played on a standalone server and on an ensemble. Logs are in dir.
func Scripts(_ context.Context, dir string, _ *server.Kind) ([]cases.Script, func() error) {
	return []cases.Script{
		{Name: "audit, alone", Play: func(ctx context.Context, k *server.Kind) cases.Played { return playedAlone(ctx, k, dir) }},
		{Name: "audit, ensemble", Play: playedOnEnsemble},
	}, func() error { return nil }
}

// play plays the sequence of this name on the servers at these addresses.
func play(ctx context.Context, name string, addrs ...string) (*exchange.Transcript, error) {
	list := must.Get(exchange.ReadScript(script))
	at := slices.IndexFunc(list, func(s *exchange.Sequence) bool { return s.Name == name })
	p := exchange.NewPlayer(addrs...)
	p.ReplyTimeout = patience
	t, err := p.Play(ctx, list[at], exchange.RootTemplate)
	return t, errors.Join(err, p.Close())
}

// playedAlone plays on a standalone server and stops it, so that its log is complete.
func playedAlone(ctx context.Context, k *server.Kind, dir string) (played cases.Played) {
	opts := server.Options{Keys: auditKeys(), AuditLog: filepath.Join(dir, k.Name+".log")}
	p := must.Get(k.Start(ctx, opts))
	var err error
	if played.Replies, err = play(ctx, "alone", p.Addr()); err == nil {
		_, err = server.FourLetterWord(ctx, p.Addr(), "srst")
	}
	output := p.Log()
	stopErr := p.Stop()
	if err != nil {
		must.Failf("%s: %w\n%s", p.Name(), err, output)
	}
	must.Do(stopErr)
	if played.Lines = normalized(string(must.Get(os.ReadFile(opts.AuditLog)))); len(played.Lines) == 0 {
		must.Failf("the audit log of %s is empty", p.Name())
	}
	return played
}

func auditKeys() map[string]string {
	keys := server.Defaults()
	keys["audit.enable"], keys["enforceQuota"] = "true", "true"
	return keys
}

// playedOnEnsemble plays on an ensemble; the lines are those of the leader and of both followers.
func playedOnEnsemble(ctx context.Context, k *server.Kind) (played cases.Played) {
	keys := auditKeys()
	keys["reconfigEnabled"], keys["standaloneEnabled"] = "true", "false"
	e := must.Get(k.StartEnsemble(ctx, server.EnsembleOptions{Members: 3, Keys: keys, Audit: true}))
	defer must.Finally(e.Stop)
	order := must.Get(e.LeaderFirst(ctx))
	var err error
	if played.Replies, err = play(ctx, "ensemble", order[0].Addr(), order[1].Addr(), order[2].Addr()); err != nil {
		must.Failf("%s: %w\n%s", e.Name(), err, e.Log())
	}
	for i, role := range []string{"leader", "follower", "other follower"} {
		for _, line := range normalized(awaitEnd(ctx, order[i].AuditLog(), fmt.Sprintf("/end-%d", i))) {
			played.Lines = append(played.Lines, role+": "+line)
		}
	}
	return played
}

// awaitEnd returns the content of a log that has a line of the znode.
func awaitEnd(ctx context.Context, log, znode string) (content string) {
	must.Await(ctx, patience, log+" has "+znode, func() error {
		b, err := os.ReadFile(log)
		if content = string(b); err == nil && !strings.Contains(content, "znode="+znode+"\t") {
			err = errors.New("it is not there")
		}
		return err
	})
	return content
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
