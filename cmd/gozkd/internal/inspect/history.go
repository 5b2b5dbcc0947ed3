package inspect

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/replica"
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
	var o options
	below := fs.Bool("below", false, "")
	o.shared(fs)
	words, err := cli.ParseFlags(fs, args)
	switch {
	case err != nil:
		return c.End(err)
	case len(words) < 2:
		return c.Misused(errors.New("name a znode, and a data directory or a file of its log"))
	case o.logDir != "" && len(words) > 2:
		return c.Misused(errors.New("--log-dir is for a single data directory"))
	case proto.ValidatePath(words[0]) != nil:
		return c.Misused(proto.ValidatePath(words[0]))
	}
	return o.each(ctx, c, words[1:], func(p *printer, s *source, _ bool) error {
		return o.printHistory(ctx, p, s, &replica.Filter{Path: words[0], Below: *below})
	})
}

// printHistory prints the changes that a source has.
func (o *options) printHistory(ctx context.Context, p *printer, s *source, filter *replica.Filter) error {
	var first *replica.Txn // of the log
	found := 0
	err := s.transactions(func(t *replica.Txn) bool {
		if first == nil {
			first = &replica.Txn{Time: t.Time, Zxid: t.Zxid}
		}
		if change := filter.Change(t); change != nil && o.when.has(t) {
			found++
			p.txn(change)
		}
		return p.err == nil && ctx.Err() == nil
	})
	switch {
	case first == nil && err == nil:
		err = errors.New("the log holds no transactions, so it does not tell")
	case first != nil && found == 0:
		s.notes = slices.Insert(s.notes, 0, fmt.Sprintf("%s: no change of %s; the log begins at %s", s.path,
			printable.Text(filter.Path), timeText(first.Time)))
	}
	return err
}
