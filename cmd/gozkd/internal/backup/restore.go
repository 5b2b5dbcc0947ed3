package backup

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive/store"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/memberid"
)

const restoreUsage = `usage: gozkd restore --from SOURCE [--log-dir DIR] [flags of serve] [zoo.cfg]
       gozkd restore URL [--at MOMENT] [--into DIR] [flags of serve] [zoo.cfg]
       gozkd restore SOURCE --subtree PATH --to HOST:PORT,... (gozkd restore --subtree / --help)

Makes a new data directory with the state of SOURCE, at the place where serve with the same flags and
zoo.cfg looks for it. The server starts a new ensemble: alone, or, if zoo.cfg has server lines, one
that the other servers join with empty data directories. SOURCE is not changed. The new data directory
must be empty, except for myid, admin.token and the file initialize, which gozkd init writes.

SOURCE is one of
  FILE  a backup, or a copy of a stopped server's checkpoint.db
  DIR   the data directory of a stopped server, for example one that has lost its ensemble
  URL   an archive: file:///DIRECTORY or s3://BUCKET/PREFIX, as gozkd.archive.url names it. Any moment
        can be restored; gozkd verify URL shows which

flags:
  --from SOURCE       the state to restore
  --log-dir DIR       the directory of SOURCE's log, if its dataLogDir differs from its dataDir
  --at MOMENT         the moment in an archive: a time, such as 2026-11-22T08:00:00Z, or a zxid, such as
                      0x100000007. What was written up to then, including it. Default: the last one
  --ensemble-id ID    the ensemble in an archive, if there are objects of several
  --into DIR          the new data directory, for the log too; replaces --data-dir and dataLogDir
  --data-dir DIR, --id N, -o KEY=VALUE and the rest: as for serve
`

// minSkip is how many epochs and terms a restore skips at least.
const minSkip = 1 << 16

// Restore runs `gozkd restore`.
func Restore(ctx context.Context, args []string, env cli.Env) int {
	c := &command{cli.Command{Env: env, Name: "restore", Usage: restoreUsage}}
	if wantsSubtree(args) {
		return restoreSubtree(ctx, c, args)
	}
	from, into, server, err := loadRestore(args, env)
	var wrong interface{ Usage() bool }
	switch {
	case server.Help:
		cli.Print(env.Out, c.Usage)
		return cli.OK
	case errors.As(err, &wrong) && wrong.Usage():
		return c.Misused(err)
	case from.url == "":
		hint := ""
		isFlag := func(arg string) bool { return strings.HasPrefix(arg, "-") }
		if n := len(args); n > 0 && !isFlag(args[n-1]) && (n == 1 || !isFlag(args[n-2])) {
			hint = fmt.Sprintf("; write --from %s if that is it, because the word without a flag is zoo.cfg", args[n-1])
		}
		return c.Misused(errors.New("--from is missing: name the state to restore" + hint))
	case err != nil:
		return c.Fail(err)
	case !server.One:
		return c.Misused(errors.New("restore makes the data directory of one server: leave out --memory, --ensemble and other commands"))
	}
	t := target{id: max(1, server.ID), dir: server.Dir, logDir: server.LogDir}
	if into != "" {
		t.dir, t.logDir = into, into
	}
	if err := from.check(); err != nil {
		return c.Misused(err)
	}
	done, err := restore(ctx, func() (*source, error) { return c.read(ctx, from) }, t, time.Now(), false)
	if err != nil {
		return c.Fail(err)
	}
	c.report(done, server.Members > 1)
	return cli.OK
}

// loadRestore reads the command line and the configuration of the server to restore.
func loadRestore(args []string, env cli.Env) (from moment, into string, server cli.Server, err error) {
	load := func(args []string) (cli.Server, error) {
		flags := flag.NewFlagSet("restore", flag.ContinueOnError)
		from.register(flags)
		flags.StringVar(&into, "into", "", "")
		return env.Server(flags, args)
	}
	args = withURL(args)
	server, err = load(args)
	if into == "" {
		return from, into, server, err
	}
	// The file myid in the new directory has the number of its server: serve reads it there, and
	// would refuse the data of another number.
	if _, missing := os.Stat(filepath.Join(into, "myid")); missing == nil {
		server, err = load(append(slices.Clone(args), "--data-dir", into))
	}
	return from, into, server, err
}

// check refuses flags that the source does not take.
func (m *moment) check() error {
	if !m.at.Time.After(time.Now()) && !store.IsURL(m.url) && (m.at != (cli.Moment{}) || m.ensemble != "") {
		return errors.New("--at and --ensemble-id are for an archive: name its URL")
	}
	return nil
}

// read reads the state that m names.
func (c *command) read(ctx context.Context, m moment) (*source, error) {
	switch {
	case m.at.Time.After(time.Now()):
		at := m.at.Time.Format(time.RFC3339)
		return nil, fmt.Errorf("--at %s is in the future: leave it out for the last state", at)
	case store.IsURL(m.url):
		a, err := archive.OpenURL(ctx, m.url, m.ensemble, c.Env.Getenv)
		if err != nil {
			return nil, err
		}
		return restoreMoment(ctx, a, m.at.Moment)
	case isURL(m.url):
		return nil, errors.New("a running server can't be restored from: make a backup of it first, with gozkd backup --from " + store.ShownURL(m.url) + " FILE")
	}
	return readSource(m.url, m.logDir)
}

// target is the data directory to make.
type target struct {
	id          uint64
	dir, logDir string
}

// restored describes a finished restore.
type restored struct {
	from *source  // its tree was changed to the tree of the new directory
	was  struct { // the source before the change
		zxid, digest string
		znodes       int
	}
	closed datatree.Refounded
	begins consensus.SavedState
	target target
}

// restore makes the new data directory t from a source, with its sessions or without.
func restore(
	ctx context.Context, read func() (*source, error), t target, now time.Time, keepSessions bool,
) (*restored, error) {
	var besides []string
	if keepSessions {
		besides = []string{standbyFolder}
	}
	for _, dir := range []string{t.dir, t.logDir} {
		if err := CheckEmpty(dir, besides...); err != nil {
			return nil, err
		}
	}
	s, err := read()
	if err != nil {
		return nil, err
	}
	done := &restored{from: s, target: t}
	done.was.zxid, done.was.digest = s.tree.LastZxid().String(), fmt.Sprintf("%#016x", s.tree.Digest())
	done.was.znodes = s.tree.NumZnodes()
	skip := skipSince(s.held.Time, now)
	epoch := uint64(s.tree.LastZxid().Epoch()) + skip
	if epoch >= math.MaxInt32 {
		return nil, fmt.Errorf("zxid %v leaves no room for the %d epochs that a restore skips: copy the tree with gozkd cli export and import instead",
			s.tree.LastZxid(), skip)
	}
	timeMs := max(s.held.Time.UnixMilli(), 0) // that of the zero time is negative
	done.closed = s.tree.Refound(uint32(epoch), timeMs, keepSessions)
	if err := errors.Join(s.tree.Check(), ctx.Err()); err != nil {
		return nil, err
	}
	done.begins, err = found(s.held, s.tree, t, skip)
	return done, err
}

// found makes a data directory whose member begins a new ensemble with a state, and reads it back.
func found(held consensus.SavedState, tree *datatree.Tree, t target, newTerms uint64) (consensus.SavedState, error) {
	if err := writeMyID(t); err != nil {
		return consensus.SavedState{}, err
	}
	begins, err := held.FoundEnsemble(consensus.Foundation{ID: t.id, Dir: t.dir, LogDir: t.logDir, Cluster: newCluster(held.Cluster), NewTerms: newTerms}, tree.CaptureAll())
	if err != nil {
		return begins, fmt.Errorf("%w\nThe new data directory %s is incomplete: empty it before you try again", err, t.dir)
	}
	again, err := readSource(t.dir, t.logDir)
	if err != nil {
		return begins, fmt.Errorf("the new data directory is not good: reading it back failed: %w", err)
	}
	if again.tree.Digest() != tree.Digest() || again.tree.LastZxid() != tree.LastZxid() || again.held.Index != begins.Index {
		return begins, fmt.Errorf("the new data directory is not good: it has zxid %v and digest %#x, want %v and %#x",
			again.tree.LastZxid(), again.tree.Digest(), tree.LastZxid(), tree.Digest())
	}
	return begins, nil
}

// writeMyID writes the file myid unless it exists. A member of an ensemble needs it to start.
func writeMyID(t target) error {
	if err := os.MkdirAll(t.dir, 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(t.dir, "myid"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil // the caller has read it
	}
	if err == nil {
		_, err = fmt.Fprintln(f, memberid.Number(t.id))
		err = errors.Join(err, f.Sync(), f.Close())
	}
	return err
}

// skipSince returns how many epochs and terms to skip for a state that was last written at the time
// written: more than the old ensemble can have used since.
func skipSince(written, now time.Time) uint64 {
	if written.IsZero() {
		return minSkip
	}
	return minSkip + uint64(max(now.Unix()-written.Unix(), 0))
}

// newCluster draws the id of the new ensemble.
func newCluster(old uint64) uint64 {
	for {
		if n := rand.Uint64(); n != 0 && n != old {
			return n
		}
	}
}

// CheckEmpty refuses a directory that holds anything except myid, initialize (both of which gozkd
// init writes), admin.token and its unfinished copies, lost+found, and what is named besides. A
// missing directory is empty.
func CheckEmpty(dir string, besides ...string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	found := ""
	for _, e := range entries {
		unfinished, _ := filepath.Match("admin.token.[0-9]*", e.Name()) // a process was killed while it wrote the token
		other := !slices.Contains(append(besides, "myid", "initialize", "admin.token", "lost+found"), e.Name())
		if other && !unfinished && (found == "" || found == "LOCK") { // of a stopped server
			found = e.Name()
		}
	}
	if found == "" {
		return nil
	}
	if err := consensus.CheckUnused(dir); err != nil && !slices.Contains(besides, "LOCK") {
		return err
	}
	return fmt.Errorf("%s is not empty, it holds %s: a new state is never written to a directory with data; "+
		"move it away, or choose another one", dir, found)
}

// roleOf describes the member that the state comes from.
func roleOf(h consensus.SavedState) string {
	if slices.Contains(h.Voters, h.Member) {
		return fmt.Sprintf("ONE of %d voters", len(h.Voters))
	}
	return fmt.Sprintf("member %d, an observer or a former member", memberid.Number(h.Member))
}

// begins prints where the new ensemble begins.
func (c *command) begins(r *restored) {
	c.Line("begins", "member %d of the new ensemble %016x, zxid %v, term %d",
		memberid.Number(r.target.id), r.begins.Cluster, r.from.tree.LastZxid(), r.begins.Term)
}

// report prints a summary, possible losses, and the next steps.
func (c *command) report(r *restored, several bool) {
	h := r.from.held
	c.Line("restored", "%s from %s", r.target.dir, r.from.path)
	c.Line("state", "zxid %s, %d znodes, digest %s, last written %s", r.was.zxid, r.was.znodes, r.was.digest, h.Time.UTC().Format(time.RFC3339))
	c.Line("closed", "%d sessions and their %d ephemeral znodes: clients are told that their session has expired", r.closed.Sessions, r.closed.Ephemerals)
	c.begins(r)
	alone := len(h.Voters) == 1 && h.Voters[0] == h.Member
	if r.from.dir && !alone {
		cli.Print(c.Env.Out, fmt.Sprintf(`
WARNING: %s holds the state of %s. Writes that others acknowledged and this member did not receive ARE LOST.
  Its last entry has term %d and index %d. If the directory of another voter is left, run gozkd inspect DIR on it as well. Restore from the
  directory with the highest term, and among equal terms the highest index. The zxid does not decide.
`, r.from.path, roleOf(h), h.Term, h.Index))
		if h.Committed < h.Index {
			cli.Print(c.Env.Out, fmt.Sprintf("  Entries %d to %d were not known to be committed. They are restored, since they may have been.\n", h.Committed+1, h.Index))
		}
	}
	next := "start this server"
	if several || !alone {
		next = `start this server, and wait until it serves clients (gozkd ruok -ready). Only then start the others, each with an EMPTY data directory.
  Members of the old ensemble must not run again with their data: they can't join this ensemble, but a quorum of them would serve the old state.`
	}
	cli.Print(c.Env.Out, "\nNext: "+next+"\n")
}
