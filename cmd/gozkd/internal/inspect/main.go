package inspect

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive/store"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/backup"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/replica"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/subtree"
	"github.com/gozkd/gozkd/proto"
)

const usage = `usage: gozkd inspect [--log | --znodes | --sessions | --tree] [flags] DIR|FILE|URL...

Prints data files, and changes nothing: a data directory, a checkpoint file or a backup, a
segment of the log (*.wal) or the directory of the log; ZooKeeper's dataDir, snapshots and logs; or
an archive at file:///DIRECTORY or s3://BUCKET/PREFIX, of which --znodes, --sessions and --tree print
the last state.

Without one of the four flags it describes the data directory of a stopped server, or a checkpoint
file. Given several, it names the one with the most recent state.

flags:
  --log            transactions of the log, one per line (the default for a log alone and an archive)
  --znodes         znodes, one per line
  --sessions       sessions, one per line
  --tree           sums per subtree: znodes, ephemerals, bytes in paths and data
  --depth N        of --tree: levels of subtrees (1)
  --subtree PATH   only PATH and what is below it
  --since, --until MOMENT
                   of --log: only transactions from or up to a zxid (0x100000002) or a time
                   (2026-11-23T08:00:00Z)
  --data           with the data of znodes
  --log-dir DIR    the directory of the log, if dataLogDir differs from dataDir; for a single DIR
  --ensemble-id ID the ensemble, if an archive holds several
  --output FORMAT  text, or json: one object per line (text)
`

// options are the flags of inspect and history.
type options struct {
	log, znodes, sessions, tree bool
	depth                       int
	below                       string // a znode and all below it; "": everything
	when                        interval
	data, json                  bool
	logDir, ensemble            string
}

func (o *options) modes() int {
	return len(slices.DeleteFunc([]bool{o.log, o.znodes, o.sessions, o.tree}, func(set bool) bool { return !set }))
}

// has reports whether the znode at path is to be printed.
func (o *options) has(path string) bool { return subtree.Within(path, cmp.Or(o.below, "/")) }

// shared adds the flags that both commands have.
func (o *options) shared(fs *flag.FlagSet) {
	fs.Var(&o.when.from, "since", "")
	fs.Var(&o.when.to, "until", "")
	fs.BoolVar(&o.data, "data", false, "")
	fs.StringVar(&o.logDir, "log-dir", "", "")
	fs.StringVar(&o.ensemble, "ensemble-id", "", "")
	cli.OutputFlag(fs, &o.json)
	cli.Alias(fs, "from", "since", "to", "until", "ensemble", "ensemble-id")
}

// parse reads the command line. Its error is for cli.Command.End.
func (o *options) parse(args []string) (words []string, err error) {
	fs := flag.NewFlagSet("inspect", flag.ContinueOnError)
	fs.BoolVar(&o.log, "log", false, "")
	fs.BoolVar(&o.znodes, "znodes", false, "")
	fs.BoolVar(&o.sessions, "sessions", false, "")
	fs.BoolVar(&o.tree, "tree", false, "")
	fs.IntVar(&o.depth, "depth", 1, "")
	fs.StringVar(&o.below, "subtree", "", "")
	cli.Alias(fs, "path", "subtree")
	o.shared(fs)
	if words, err = cli.ParseFlags(fs, args); err != nil {
		return nil, err
	}
	switch {
	case o.below != "" && proto.ValidatePath(o.below) != nil:
		err = proto.ValidatePath(o.below)
	case len(words) == 0:
		err = errors.New("name a data directory or a file")
	case o.logDir != "" && len(words) > 1:
		err = errors.New("--log-dir is for a single data directory")
	case o.modes() > 1:
		err = errors.New("--log, --znodes, --sessions and --tree exclude each other")
	case o.depth < 0:
		err = errors.New("--depth must be 0 or more")
	}
	if err != nil {
		err = cli.UsageError{Err: err}
	}
	return words, err
}

// Main runs `gozkd inspect`.
func Main(ctx context.Context, args []string, env cli.Env) int {
	c := cli.Command{Env: env, Name: "inspect", Usage: usage}
	var o options
	words, err := o.parse(args)
	if err != nil {
		return c.End(err)
	}
	if o.modes() == 0 {
		describe, err := describes(words)
		switch {
		case err != nil:
			return c.Fail(err)
		case describe && (o.json || o.data || o.below != "" || o.when != interval{}):
			return c.Misused(errors.New("say what to print: --log, --znodes, --sessions or --tree"))
		case describe:
			return backup.Describe(ctx, c, words, o.logDir)
		}
	}
	return o.each(ctx, c, words, func(p *printer, s *source, log bool) error { return o.print(ctx, p, s, log) })
}

// each opens the source at each path, prints it with print, its notes on standard error, and
// returns the exit status. log says that a source holds transactions and no state.
func (o *options) each(
	ctx context.Context, c cli.Command, paths []string, print func(p *printer, s *source, log bool) error,
) (status int) {
	out := bufio.NewWriter(c.Env.Out)
	p := &printer{w: out, json: o.json, data: o.data}
	for _, path := range paths {
		s, log, err := o.open(ctx, c.Env, path)
		if err == nil {
			s.path = path
			err = errors.Join(print(p, s, log), ctx.Err())
			for _, note := range s.notes {
				cli.Print(c.Env.Err, "gozkd "+c.Name+": "+note+"\n")
			}
		}
		if flushErr := out.Flush(); p.err == nil {
			p.err = flushErr
		}
		if p.err != nil { // nobody reads on
			return c.Fail(p.err)
		}
		if err != nil {
			status = c.Fail(fmt.Errorf("%s: %w", store.ShownPath(path), err))
		}
	}
	return status
}

// describes reports whether the paths hold data that is described unless a flag says otherwise.
func describes(paths []string) (bool, error) {
	for _, path := range paths {
		if store.IsURL(path) {
			return false, nil
		}
		if f, err := formatOf(path); err != nil || !f.describe {
			return false, err
		}
	}
	return true, nil
}

func (o *options) print(ctx context.Context, p *printer, s *source, log bool) error {
	goesOn := func() bool { return p.err == nil && ctx.Err() == nil }
	if o.log || o.modes() == 0 && log {
		return s.transactions(func(t *replica.Txn) bool {
			if o.when.has(t) && (o.below == "" || t.Touches(o.has)) {
				p.txn(t)
			}
			return goesOn()
		})
	}
	state, err := s.state()
	if state != nil {
		o.printState(p, state, goesOn)
	}
	return err
}

func (o *options) printState(p *printer, state *datatree.Tree, goesOn func() bool) {
	if o.sessions {
		for info := range state.Sessions() {
			if p.session(info); !goesOn() {
				break
			}
		}
		return
	}
	add, total := p.znode, &sums{root: cmp.Or(o.below, "/"), depth: o.depth, index: make(map[string]int)}
	if o.tree {
		add = total.add
	}
	state.Walk("/", func(z proto.Znode) bool {
		if o.has(z.Path) {
			add(&z)
		}
		return goesOn()
	})
	if o.tree {
		total.print(p)
	}
}

// interval is a range of transactions, with both ends: the values of --since and --until.
type interval struct{ from, to cli.Moment }

func (i *interval) has(t *replica.Txn) bool {
	return (i.from == cli.Moment{} || compare(t, i.from) >= 0) && (i.to == cli.Moment{} || compare(t, i.to) <= 0)
}

// compare returns a negative number if t is before a moment, and a positive one if t is after it. A
// transaction whose zxid is not known is older than all others of its log.
func compare(t *replica.Txn, m cli.Moment) int {
	if !m.Time.IsZero() {
		return t.Time.Compare(m.Time)
	}
	return cmp.Compare(t.Zxid, m.Zxid)
}
