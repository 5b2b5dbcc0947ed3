package inspect

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/internal/printable"
	"github.com/gozkd/gozkd/proto"
)

const historyUsage = `usage: gozkd history [flags] PATH DIR|FILE|URL...

Prints who changed the znode PATH, and when, as far back as the log in a data directory reaches, or an
archive at file:///DIRECTORY or s3://BUCKET/PREFIX. It changes and locks nothing, so the server may
run. Each server has its own log, and a server that was restored or has joined lately has a short one.

Each line has the zxid, the time, the session and the identities of the client. "ok" says that the
change was made. "?" says that the log no longer tells: the transaction is older than the checkpoint,
and may have failed. Transactions that are known to have failed are left out.

flags:
  --below           the znodes below PATH as well
  --since, --until MOMENT
                    only changes from or up to a zxid (0x100000002) or a time (2026-11-23T08:00:00Z)
  --data            with the data that was written
  --log-dir DIR     the directory of the log, if dataLogDir differs from dataDir; for a single DIR
  --ensemble-id ID  the ensemble, if an archive holds several
  --output FORMAT   text, or json: one object per line (text)
`

// History runs `gozkd history`.
func History(ctx context.Context, args []string, env cli.Env) int {
	c := cli.Command{Env: env, Name: "history", Usage: historyUsage}
	fs := flag.NewFlagSet(c.Name, flag.ContinueOnError)
	var when interval
	below := fs.Bool("below", false, "")
	fs.Var(&when.from, "since", "")
	fs.Var(&when.to, "until", "")
	data := fs.Bool("data", false, "")
	logDir := fs.String("log-dir", "", "")
	ensemble := fs.String("ensemble-id", "", "")
	var json bool
	cli.OutputFlag(fs, &json)
	cli.Alias(fs, "from", "since", "to", "until", "ensemble", "ensemble-id")
	words, status, done := c.Parse(fs, args)
	if done {
		return status
	}
	switch {
	case len(words) < 2:
		return c.Misused(errors.New("name a znode, and a data directory or a file of its log"))
	case *logDir != "" && len(words) > 2:
		return c.Misused(errors.New("--log-dir is for a single data directory"))
	case proto.ValidatePath(words[0]) != nil:
		return c.Misused(proto.ValidatePath(words[0]))
	}
	p := &printer{json: json, data: *data}
	return p.each(c, words[1:], func(path string) error {
		return newHistory(words[0], *below, when).print(ctx, c, p, place{path, *logDir, *ensemble})
	})
}

// znodeHistory selects the changes of a znode from a log.
type znodeHistory struct {
	path  string
	below bool
	when  interval
	// owners are the sessions of ephemerals that match, by path. Only of transactions whose result
	// is not known: otherwise the end of a session names them.
	owners map[string]proto.SessionID
	first  *Txn // of the log
	found  int
}

func newHistory(path string, below bool, when interval) *znodeHistory {
	return &znodeHistory{path: path, below: below, when: when, owners: make(map[string]proto.SessionID)}
}

func (h *znodeHistory) matches(path string) bool {
	return path == h.path || h.below && subtree(h.path).has(path)
}

func (h *znodeHistory) print(ctx context.Context, c cli.Command, p *printer, where place) error {
	s, _, err := where.open(ctx, c.Env)
	if err != nil {
		return err
	}
	err = s.Transactions(func(t *Txn) bool {
		if h.first == nil {
			h.first = &Txn{Time: t.Time, Zxid: t.Zxid}
		}
		if change := h.change(t); change != nil && h.when.has(t) {
			h.found++
			p.txn(change)
		}
		return p.err == nil && ctx.Err() == nil
	})
	switch {
	case h.first == nil && err == nil:
		err = errors.New("the log holds no transactions, so it does not tell")
	case h.found == 0:
		cli.Print(c.Env.Err, fmt.Sprintf("gozkd history: %s: no change of %s; the log begins at %s\n", where.path, printable.Text(h.path), timeText(h.first.Time)))
	}
	for _, note := range s.Notes() {
		cli.Print(c.Env.Err, "gozkd history: "+note+"\n")
	}
	return errors.Join(err, ctx.Err())
}

// change returns the part of a transaction that concerns the znode, or nil.
func (h *znodeHistory) change(t *Txn) *Txn {
	if t.failed() {
		return nil
	}
	part := *t
	part.Ops, part.Deleted = nil, nil
	for i := range t.Ops {
		if op := h.operation(t, &t.Ops[i]); op != nil {
			part.Ops = append(part.Ops, *op)
		}
	}
	for _, path := range t.Deleted {
		if h.matches(path) {
			part.Deleted = append(part.Deleted, path)
		}
	}
	if ends := t.Op == proto.OpCloseSession.String() || t.Op == proto.OpExpireSession.String(); ends && !t.Known {
		for _, path := range slices.Sorted(maps.Keys(h.owners)) {
			if h.owners[path] == t.Session {
				part.Deleted = append(part.Deleted, path)
				delete(h.owners, path)
			}
		}
	}
	if len(part.Ops) > 0 || len(part.Deleted) > 0 {
		return &part
	}
	return h.operation(t, t)
}

// operation returns op, which is a part of t or t itself, if it changes the znode.
func (h *znodeHistory) operation(t, op *Txn) *Txn {
	if op.Op == proto.OpCheck.String() {
		return nil
	}
	path := op.Path
	if n := len(path); op.Sequential && len(h.path) == n+10 && h.path[:n] == path && strings.Trim(h.path[n:], "0123456789") == "" {
		path = h.path // the operation lacks the number, so it may have made this znode
	}
	if !h.matches(path) {
		return nil
	}
	if !t.Known && op.Mode == "ephemeral" {
		h.owners[path] = t.Session
	}
	return op
}
