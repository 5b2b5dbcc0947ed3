// Package audit plays script.txt on servers that write audit logs in ZooKeeper's format. The lines
// of both servers must be equal except for the numbers of sessions.
package audit

import (
	"context"
	_ "embed" // script.txt
	"errors"
	"fmt"
	"os"
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

// Scripts are played on a standalone server and on an ensemble.
func Scripts(context.Context, string, *server.Kind) ([]cases.Script, func() error) {
	return []cases.Script{
		{Name: "audit, alone", Play: func(ctx context.Context, k *server.Kind) cases.Played { return played(ctx, k, "alone", 1) }},
		{Name: "audit, ensemble", Play: func(ctx context.Context, k *server.Kind) cases.Played { return played(ctx, k, "ensemble", 3) }},
	}, func() error { return nil }
}

// played plays the sequence of this name on that many servers. The lines are those of their logs:
// of a standalone server, which is stopped so that its log is complete, or of the leader and of
// both followers.
func played(ctx context.Context, k *server.Kind, name string, members int) (played cases.Played) {
	keys := server.Defaults()
	keys["audit.enable"], keys["enforceQuota"] = "true", "true"
	if members > 1 {
		keys["reconfigEnabled"], keys["standaloneEnabled"] = "true", "false"
	}
	e := must.Get(k.StartEnsemble(ctx, server.EnsembleOptions{Members: members, Keys: keys, Audit: true}))
	defer must.Finally(e.Stop)
	order := e.Members
	if members > 1 {
		order = must.Get(e.LeaderFirst(ctx))
	}
	p := exchange.NewPlayer()
	for _, m := range order {
		p.Members = append(p.Members, m.Addr())
	}
	p.ReplyTimeout = patience
	list := must.Get(exchange.ReadScript(script))
	at := slices.IndexFunc(list, func(s *exchange.Sequence) bool { return s.Name == name })
	var err error
	played.Replies, err = p.Play(ctx, list[at], exchange.RootTemplate)
	if err = errors.Join(err, p.Close()); err != nil {
		must.Failf("%s: %w\n%s", e.Name(), err, e.Log())
	}
	if members == 1 {
		must.Get(server.FourLetterWord(ctx, order[0].Addr(), "srst"))
		must.Do(order[0].Stop())
		played.Lines = normalized(string(must.Get(os.ReadFile(order[0].AuditLog()))))
	} else {
		for i, role := range []string{"leader", "follower", "other follower"} {
			for _, line := range normalized(awaitEnd(ctx, order[i].AuditLog(), fmt.Sprintf("/end-%d", i))) {
				played.Lines = append(played.Lines, role+": "+line)
			}
		}
	}
	if len(played.Lines) == 0 {
		must.Failf("the audit log of %s is empty", e.Name())
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
