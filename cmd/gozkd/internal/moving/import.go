package moving

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/zkdata"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
)

const importUsage = `usage: gozkd import DIR[:LOGDIR]... --into DATA-DIR [flags]
       gozkd import DIR[:LOGDIR]... --verify

Founds a new ensemble with the state of stopped ZooKeeper servers, version 3.4 to 3.9: znodes with
their ACLs, versions, times and sequence counters, sessions with their ephemerals, and zxids. Each
checksum is verified, and where ZooKeeper wrote digests, also that the result equals its state. DIR
is not changed.

DIR is the dataDir of a server, LOGDIR its dataLogDir if that differs. Name all servers of an
ensemble that are left: the state is that of the server which would win an election.

flags:
  --into DATA-DIR      the data directory to make; it must be empty, except for myid
  --into-log-dir DIR   the directory of its log, if dataLogDir will differ from dataDir
  --id N               the number of its server among the server lines (default: the file myid, or 1)
  --verify             read, compare and report, and write nothing
  --until MOMENT       leave out what came after this transaction (0x1200000034), or after this time
                       (2026-01-31T12:00:00Z)
  --subtree PATH       import this znode and what is below it
  --without-sessions   close all sessions, which deletes their ephemerals
  --output FORMAT      text, or json (text)
`

// importCommand is a running `gozkd import`.
type importCommand struct {
	cli.Command
	target
	verify, json    bool
	only            string
	withoutSessions bool
}

// Import runs `gozkd import`.
func Import(ctx context.Context, args []string, env cli.Env) int {
	c := &importCommand{Command: cli.Command{Env: env, Name: "import", Usage: importUsage}}
	flags := flag.NewFlagSet(c.Name, flag.ContinueOnError)
	c.register(flags)
	flags.BoolVar(&c.verify, "verify", false, "")
	flags.BoolVar(&c.json, "json", false, "") // the former name of --output json
	flags.BoolVar(&c.withoutSessions, "without-sessions", false, "")
	flags.StringVar(&c.only, "subtree", "", "")
	cli.OutputFlag(flags, &c.json)
	cli.Alias(flags, "only", "subtree")
	var until cli.Moment
	flags.Var(&until, "until", "")
	return c.Do(flags, args, c.check, func(words []string) error {
		opt := zkdata.Options{Until: until.Moment, Progress: progressOn(env.Err)}
		began := time.Now()
		r, err := c.run(ctx, words, opt)
		if opt.Progress != nil {
			opt.Progress("", 0)
		}
		if err == nil {
			r.Seconds = time.Since(began).Seconds()
			c.print(r)
		}
		return err
	})
}

func (c *importCommand) check(words []string) error {
	switch {
	case len(words) == 0:
		return errors.New("name the dataDir of a ZooKeeper server")
	case c.into == "" && !c.verify:
		return errors.New("--into is missing: name the data directory to make, or use --verify to write nothing")
	case c.into != "" && c.verify:
		return errors.New("--verify writes nothing: leave --into out")
	case c.only != "" && proto.ValidatePath(c.only) != nil:
		return fmt.Errorf("--subtree %s: %w", c.only, proto.ValidatePath(c.only))
	}
	return nil
}

// report holds the figures that an import prints.
type report struct {
	From       string   `json:"from"`
	Into       string   `json:"into,omitempty"`
	Snapshot   string   `json:"snapshot"`
	Zxid       string   `json:"zxid"`
	Znodes     int      `json:"znodes"`
	Ephemerals int      `json:"ephemerals"`
	Sessions   int      `json:"sessions"`
	Bytes      int64    `json:"bytes"`
	Records    int64    `json:"transactions"`
	Compared   int64    `json:"digests_equal"`
	Digest     string   `json:"digest"`
	Closed     int      `json:"sessions_closed"`
	Unknown    int      `json:"sessions_unknown"`
	Skipped    []string `json:"snapshots_skipped,omitempty"`
	Torn       []string `json:"incomplete_records,omitempty"`
	Seconds    float64  `json:"seconds"`
}

func (c *importCommand) run(ctx context.Context, dirs []string, opt zkdata.Options) (*report, error) {
	if !c.verify {
		if err := c.usable(); err != nil {
			return nil, err
		}
	}
	var all []*zkdata.Directory
	for _, dir := range dirs {
		d, err := zkdata.Find(dir)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	d, err := zkdata.Newest(all)
	if err != nil {
		return nil, err
	}
	l, err := zkdata.Load(ctx, d, opt)
	if err != nil {
		return nil, err
	}
	closed, err := c.reduce(l.Replay)
	if err != nil {
		return nil, err
	}
	if err := l.Tree.Check(); err != nil {
		return nil, fmt.Errorf("%s: %w", d.Name, err)
	}
	r := &report{
		From: d.Name, Into: c.into, Snapshot: l.Snapshot.Path, Zxid: l.Tree.LastZxid().String(),
		Znodes: l.Tree.NumZnodes(), Ephemerals: l.Tree.NumEphemerals(), Sessions: l.Tree.NumSessions(), Bytes: l.Tree.ApproximateDataSize(),
		Records: l.Records, Compared: l.Compared, Closed: closed, Unknown: l.Unknown, Skipped: l.Unfinished, Torn: l.Torn,
		Digest: fmt.Sprintf("%#x", l.Replay.Digest()),
	}
	if c.verify {
		return r, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return r, c.found(l.Tree)
}

// reduce drops the parts that the flags exclude, and returns the number of closed sessions.
func (c *importCommand) reduce(replay *datatree.Replay) (closed int, err error) {
	if c.withoutSessions {
		for s := range replay.Tree().Sessions() {
			closed++
			if err := replay.DropSession(s.ID); err != nil {
				return 0, err
			}
		}
	}
	if c.only != "" && !replay.Keep(c.only) {
		return 0, fmt.Errorf("--subtree %s: there is no such znode", c.only)
	}
	return closed, nil
}

func (c *importCommand) print(r *report) {
	if c.json {
		c.PrintJSON(r)
		return
	}
	done := "verified"
	if r.Into != "" {
		done = "imported"
	}
	read := fmt.Sprintf("%s and %d transactions after it", r.Snapshot, r.Records)
	if r.Snapshot == "" {
		read = fmt.Sprintf("no snapshot, and %d transactions from the first on", r.Records)
	}
	c.Line(done, "%s: %s, in %.1f s", r.From, read, r.Seconds)
	c.Line("state", "zxid %s, %d znodes, %d of them ephemeral, %d sessions", r.Zxid, r.Znodes, r.Ephemerals, r.Sessions)
	switch r.Compared {
	case 0:
		c.Line("digest", "%s; not compared: servers before 3.6 wrote none", r.Digest)
	default:
		c.Line("digest", "%s; compared with ZooKeeper's %d times, and equal", r.Digest, r.Compared)
	}
	for _, s := range r.Skipped {
		c.Line("left out", "snapshot %s, which is not complete", s)
	}
	for _, s := range r.Torn {
		c.Line("left out", "%s: the server was killed while it wrote it, and acknowledged nothing of it", s)
	}
	if r.Closed > 0 {
		c.Line("closed", "%d sessions: their clients are told that their session has expired", r.Closed)
	}
	if r.Unknown > 0 {
		c.Line("closed", "%d sessions that owned ephemerals but were not open", r.Unknown)
	}
	if r.Into != "" {
		c.Line("next", "%s", c.nextSteps())
	}
}

// progressOn returns a function that shows progress on a terminal, or nil. An empty unit ends it.
func progressOn(w io.Writer) func(unit string, n int64) {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	var last time.Time
	return func(unit string, n int64) {
		switch now := time.Now(); {
		case unit == "":
			cli.Print(w, "\r\x1b[K")
		case now.Sub(last) > 200*time.Millisecond:
			last = now
			cli.Print(w, fmt.Sprintf("\r\x1b[K%d %s", n, unit))
		}
	}
}
