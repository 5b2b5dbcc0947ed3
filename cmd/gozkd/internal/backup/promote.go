package backup

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"iter"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive/store"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/replica"
	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/internal/history"
	"github.com/gozkd/gozkd/internal/vfs"
)

const promoteUsage = `usage: gozkd standby promote DIR [--from URL] [--unfenced] [flags of serve] [zoo.cfg]

Founds a new ensemble in DIR from the standby that gozkd standby keeps there, which must be stopped.
Sessions, their ephemeral znodes and sequence counters are kept: clients that can reach the new
servers go on with their sessions.

Writes a fence into the archive first, so that the old ensemble archives no more, and then reads what
the standby has not read. WHAT WAS NOT ARCHIVED IS LOST: at most gozkd.archive.intervalMs (3 s) of
writes while the archive worked. Stop the servers of the old ensemble if you can: their clients would
go on with a history that is lost.

The server that gozkd serve --data-dir DIR starts is the first member. Other members join with empty
data directories.

flags:
  --from URL   the archive, if it is not where the standby has found it
  --unfenced   do without the archive, which is lost: no fence, and only what the standby has read
  --id N, zoo.cfg and the rest: as for serve
`

// Promote runs `gozkd standby promote`.
func Promote(ctx context.Context, args []string, env cli.Env) int {
	c := &command{cli.Command{Env: env, Name: "standby promote", Usage: promoteUsage}}
	if len(args) == 0 || strings.HasPrefix(args[0], "-") && args[0] != "--help" && args[0] != "-h" {
		return c.Misused(errors.New("name the DIR of the standby first"))
	}
	dir, from, unfenced := args[0], "", false
	flags := flag.NewFlagSet(c.Name, flag.ContinueOnError)
	flags.StringVar(&from, "from", "", "")
	flags.BoolVar(&unfenced, "unfenced", false, "")
	server, err := env.Server(flags, append(args[1:], "--data-dir", dir))
	var wrong interface{ Usage() bool }
	switch {
	case server.Help || strings.HasPrefix(dir, "-"):
		cli.Print(env.Out, c.Usage)
		return cli.OK
	case errors.As(err, &wrong) && wrong.Usage():
		return c.Misused(err)
	case err != nil:
		return c.Fail(err)
	case !server.One:
		return c.Misused(errors.New("promotion makes one server: leave out --memory and --ensemble"))
	}
	next := `
Next: start this server with gozkd serve --data-dir ` + dir + `, and wait until it serves clients. Only then
  start the others, each with an EMPTY data directory.
  Servers of the old ensemble must not run again: clients that reach them read and write a lost history.
`
	if err := CheckNotPromoted(dir); err != nil {
		switch finished, failed := finishPromotion(dir); {
		case failed != nil:
			return c.Fail(failed)
		case !finished:
			return c.Fail(err)
		}
		c.Line("promoted", "%s, by the promotion before, which was interrupted before it removed the standby", dir)
		cli.Print(env.Out, next)
		return cli.OK
	}
	if from == "" {
		text, err := os.ReadFile(filepath.Join(dir, standbyFolder, "source"))
		if err != nil && !unfenced {
			return c.Fail(fmt.Errorf("%s is no standby, or lacks the name of its archive: %w\n"+
				"Name the directory that gozkd standby has after --into, or the archive with --from", dir, err))
		}
		from = strings.TrimSpace(string(text))
	}
	var s store.Store
	if !unfenced {
		if s, err = store.Open(from, env.Getenv); err != nil {
			return c.Fail(err)
		}
	}
	begun := time.Now()
	done, err := promote(ctx, s, target{id: max(1, server.ID), dir: dir, logDir: server.LogDir}, begun)
	if err != nil {
		return c.Fail(err)
	}
	tree := done.from.tree
	c.Line("promoted", "%s in %v, from %s", dir, time.Since(begun).Round(time.Millisecond), done.from.path)
	c.Line("state", "zxid %s, %d znodes, digest %s", done.was.zxid, done.was.znodes, done.was.digest)
	c.Line("kept", "%d sessions and their %d ephemeral znodes", tree.NumSessions(), tree.NumEphemerals())
	last := archive.TimeText(done.from.held.Time)
	c.Line("lost", "what the old ensemble wrote after %s, the time of its last archived write", last)
	c.begins(done)
	cli.Print(env.Out, next)
	return cli.OK
}

// leftovers are the files of an interrupted promotion.
var leftovers = []string{"wal", "LOCK", "checkpoint.db.new"}

// promote founds a new ensemble from the standby in t.dir. Without a store, there is no fence, and
// nothing is read from the archive.
func promote(ctx context.Context, s store.Store, t target, now time.Time) (*restored, error) {
	data := filepath.Join(t.dir, standbyFolder)
	at, err := readPlace(data)
	err = errors.Join(CheckNotPromoted(t.dir), err, checkInto(t.dir, true), checkDiverged(data))
	dirs, logs := []string{t.dir}, filepath.Join(data, "logs")
	logDir, absErr := filepath.Abs(t.logDir)
	if t.logDir != t.dir {
		dirs = append(dirs, t.logDir)
		var besides []string
		if begun, _ := os.ReadFile(logs); string(begun) == logDir { // by a promotion that was interrupted
			besides = leftovers
		}
		err = errors.Join(err, absErr, CheckEmpty(t.logDir, besides...))
	}
	if err != nil {
		return nil, fmt.Errorf("%w\nNothing was promoted", err)
	}
	lock, err := vfs.OS{}.Lock(filepath.Join(data, "LOCK"))
	if err != nil {
		return nil, fmt.Errorf("%w\nStop gozkd standby first", err)
	}
	err = lock.Close()
	for _, dir := range dirs {
		for _, name := range leftovers {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, name)))
		}
	}
	if err == nil && s != nil {
		err = writeFence(ctx, s, at.Ensemble, data)
	}
	if err != nil {
		return nil, err
	}
	read := func() (*source, error) {
		state, err := newestOf(ctx, s, at, data)
		if err != nil && s != nil {
			err = fmt.Errorf("%w\nIf the archive cannot be read, --unfenced promotes what the standby has read", err)
		}
		if err == nil {
			err = errors.Join(vfs.WriteFile(vfs.OS{}, logs, []byte(logDir)), vfs.OS{}.SyncDir(data))
		}
		return state, err
	}
	done, err := restore(ctx, read, t, now, true)
	if err == nil {
		_, err = finishPromotion(t.dir)
	}
	return done, err
}

// finishPromotion removes the folder of the standby from a directory that was promoted, if it is
// there. A foreign folder stays.
func finishPromotion(dir string) (finished bool, err error) {
	data := filepath.Join(dir, standbyFolder)
	if _, err := os.Lstat(data); err != nil || checkFolder(data) != nil {
		return false, nil
	}
	if err := clearFolder(data); err != nil {
		return false, err
	}
	return true, os.RemoveAll(data)
}

// writeFence writes a standby's fence into its archive, the same fence after an interruption (W6).
func writeFence(ctx context.Context, s store.Store, ensemble uint64, data string) error {
	path := filepath.Join(data, "fence")
	name, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		name = []byte(archive.NewFence(ensemble))
		err = errors.Join(vfs.WriteFile(vfs.OS{}, path, name), vfs.OS{}.SyncDir(data))
	}
	if err != nil {
		return err
	}
	host, _ := os.Hostname()
	dir, err := filepath.Abs(filepath.Dir(data))
	if err != nil {
		return err
	}
	err = archive.Fence(ctx, s, string(name), fmt.Sprintf("promoted on %s in %s\n", host, dir))
	switch {
	case errors.Is(err, archive.ErrOtherFence):
		return fmt.Errorf("%w\nNothing was promoted", err)
	case err != nil:
		return fmt.Errorf("%w\nNothing was promoted. If the archive is lost, --unfenced does without it", err)
	}
	return nil
}

// newestOf returns the newest state of a standby's data directory and of the archive (W4).
func newestOf(ctx context.Context, s store.Store, at archive.Place, data string) (*source, error) {
	if s == nil {
		return readSource(data, "")
	}
	a, err := archive.Open(ctx, s, fmt.Sprintf("%016x", at.Ensemble))
	if err != nil {
		return nil, err
	}
	span, err := a.Continue(ctx, at)
	if errors.Is(err, archive.ErrCut) {
		state, _, err := stateAt(ctx, a, history.Moment{}, math.MaxInt64)
		return state, err
	}
	if err != nil {
		return nil, err
	}
	r := &replica.Replica{}
	held, err := consensus.ReplayDir(data, "", r, func(held consensus.SavedState) iter.Seq2[consensus.LogEntry, error] {
		return a.EntriesAfter(ctx, span, held.Index)
	})
	if err != nil {
		return nil, err
	}
	return &source{path: fmt.Sprintf("the standby and %v", a), held: held, tree: r.Tree}, nil
}
