package backup

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/vfs"
)

const restoreUsage = `usage: gozkd restore --from SOURCE [--from-log-dir DIR] [flags of serve] [zoo.cfg]

Makes a new data directory, where serve with the same flags and zoo.cfg looks for it, with the state of SOURCE. The server begins a new ensemble:
of itself, or, with server lines, one that the other servers join, with empty data directories. SOURCE is not changed, and a data directory that holds
anything but myid is refused.

SOURCE is one of
  FILE  a backup, or a copy of a stopped server's checkpoint.db
  DIR   the data directory of a stopped server, also one that has lost its ensemble

flags:
  --from SOURCE       what to restore
  --from-log-dir DIR  where the log of a data directory is, if its dataLogDir said otherwise than its dataDir
  --data-dir DIR, --id N, -o KEY=VALUE and the rest: as for serve
`

// leastLeap is by how many epochs a restored state is ahead of what it was, at least.
const leastLeap = 1 << 16

// Restore is `gozkd restore`.
func Restore(ctx context.Context, args []string, env cli.Env) int {
	c := &command{env: env, name: "restore", usage: restoreUsage}
	var from, fromLog string
	rest, err := takeFlags(args, map[string]*string{"from": &from, "from-log-dir": &fromLog})
	switch {
	case slices.ContainsFunc(rest, func(s string) bool { return s == "-h" || s == "-help" || s == "--help" }):
		c.say(env.Out, c.usage)
		return cli.OK
	case err != nil:
		return c.wrong(err.Error())
	case from == "":
		return c.wrong("--from is missing: what to restore")
	}
	inv, err := config.Load(rest, env.Getenv, nil)
	var wrong *config.Error
	switch {
	case errors.As(err, &wrong) && wrong.Usage():
		return c.wrong(err.Error())
	case err != nil:
		return c.failed(err)
	case inv.Command != config.Serve || inv.Kit() || inv.Config.Memory:
		return c.wrong("what is restored is the data directory of one server")
	}
	t := target{id: max(1, inv.Config.MyID), dir: inv.Config.DataDir, logDir: inv.Config.DataLogDir}
	done, err := restore(ctx, from, fromLog, t, time.Now())
	if err != nil {
		return c.failed(err)
	}
	c.tell(done, len(inv.Config.Members) > 1)
	return cli.OK
}

// takeFlags takes flags with a value out of args.
func takeFlags(args []string, into map[string]*string) (rest []string, err error) {
	for i := 0; i < len(args); i++ {
		name, value, given := strings.Cut(args[i], "=")
		to := into[strings.TrimPrefix(strings.TrimPrefix(name, "-"), "-")]
		switch {
		case to == nil || !strings.HasPrefix(name, "-"):
			rest = append(rest, args[i])
			if (name == "-o" || name == "--o") && !given && i+1 < len(args) { // its value is no flag of ours
				i++
				rest = append(rest, args[i])
			}
			continue
		case !given && i+1 == len(args):
			return nil, fmt.Errorf("%s needs a value", name)
		case !given:
			i++
			value = args[i]
		}
		*to = value
	}
	return rest, nil
}

// target is what is made.
type target struct {
	id          uint64
	dir, logDir string
}

// restored is what was done.
type restored struct {
	from *source // its tree is that of the new directory
	was  struct {
		zxid, digest string
		znodes       int
	}
	closed datatree.Refounded
	begins consensus.Held
	target target
}

// restore makes the new data directory.
func restore(ctx context.Context, from, fromLog string, t target, now time.Time) (*restored, error) {
	for _, dir := range []string{t.dir, t.logDir} {
		if err := mustBeEmpty(dir); err != nil {
			return nil, err
		}
	}
	if isURL(from) {
		return nil, errors.New("a running server is not restored from: make a backup of it first, gozkd backup --from " + from + " FILE")
	}
	s, err := readSource(from, fromLog)
	if errors.Is(err, vfs.ErrLocked) {
		err = fmt.Errorf("%w\nIt is in use: stop that server, or make a backup of it with gozkd backup --from http://HOST:8080 FILE", err)
	}
	if err != nil {
		return nil, err
	}
	done := &restored{from: s, target: t}
	done.was.zxid, done.was.digest = s.tree.LastZxid().String(), fmt.Sprintf("%#016x", s.tree.Digest())
	done.was.znodes = s.tree.NumZnodes()
	leap := leapSince(s.held.Time, now)
	epoch := uint64(s.tree.LastZxid().Epoch()) + leap
	if epoch >= math.MaxInt32 {
		return nil, fmt.Errorf("zxid %v leaves no room for the %d epochs that a restore skips: copy the tree with gozkd cli export and import instead",
			s.tree.LastZxid(), leap)
	}
	var timeMs int64
	if !s.held.Time.IsZero() {
		timeMs = s.held.Time.UnixMilli()
	}
	done.closed = s.tree.Refound(uint32(epoch), timeMs)
	if err := s.tree.Check(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	done.begins, err = s.held.Found(consensus.Foundation{ID: t.id, Dir: t.dir, LogDir: t.logDir, Cluster: newCluster(s.held.Cluster), NewTerms: leap}, s.tree.CaptureAll())
	if err != nil {
		return nil, fmt.Errorf("%w\nWhat there is of it in %s is of no use: empty it before the next try", err, t.dir)
	}
	again, err := readSource(t.dir, t.logDir)
	if err != nil {
		return nil, fmt.Errorf("what was written is not good: %w", err)
	}
	if again.tree.Digest() != s.tree.Digest() || again.tree.LastZxid() != s.tree.LastZxid() || again.held.Index != done.begins.Index {
		return nil, fmt.Errorf("what was written is not good: zxid %v and digest %#x, and not %v and %#x",
			again.tree.LastZxid(), again.tree.Digest(), s.tree.LastZxid(), s.tree.Digest())
	}
	return done, nil
}

// leapSince is by how many epochs and terms a state of that time goes ahead: by more than an ensemble can have gone through since.
func leapSince(written, now time.Time) uint64 {
	leap := uint64(leastLeap)
	if seconds := now.Unix() - written.Unix(); !written.IsZero() && seconds > 0 {
		leap += uint64(seconds)
	}
	return leap
}

// newCluster draws the number of the new ensemble.
func newCluster(old uint64) uint64 {
	for {
		var b [8]byte
		_, _ = rand.Read(b[:]) // it never fails
		if n := binary.BigEndian.Uint64(b[:]); n != 0 && n != old {
			return n
		}
	}
}

// mustBeEmpty refuses a directory that holds anything but the number of the server, and what file systems put there.
func mustBeEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() != "myid" && e.Name() != "lost+found" {
			return fmt.Errorf("%s is not empty, it holds %s: a restore never writes to a directory with data; move it away, or name another one", dir, e.Name())
		}
	}
	return nil
}

// whose says what the member of several was that had a state.
func whose(h consensus.Held) string {
	if slices.Contains(h.Voters, h.Member) {
		return fmt.Sprintf("ONE of %d voters", len(h.Voters))
	}
	return fmt.Sprintf("member %d, an observer or no member any more,", h.Member)
}

// tell says what was done, what may be lost, and what comes next.
func (c *command) tell(r *restored, several bool) {
	h := r.from.held
	c.line("restored", "%s from %s", r.target.dir, r.from.path)
	c.line("state", "zxid %s, %d znodes, digest %s, last written %s", r.was.zxid, r.was.znodes, r.was.digest, h.Time.UTC().Format(time.RFC3339))
	c.line("closed", "%d sessions, with their %d ephemeral znodes: clients are told that their session has expired", r.closed.Sessions, r.closed.Ephemerals)
	c.line("begins", "member %d of the new ensemble %016x, zxid %v, term %d", r.target.id, r.begins.Cluster, r.from.tree.LastZxid(), r.begins.Term)
	alone := len(h.Voters) == 1 && h.Voters[0] == h.Member
	if r.from.dir && !alone {
		c.say(c.env.Out, fmt.Sprintf(`
WARNING: %s is what %s had. What the others have acknowledged and this one had not IS LOST.
  Its last entry is of term %d and has index %d. If another voter's directory is left, ask it too: gozkd inspect DIR. Restore from the one with
  the highest term, and of those with the highest index; the zxid does not decide.
`, r.from.path, whose(h), h.Term, h.Index))
		if h.Committed < h.Index {
			c.say(c.env.Out, fmt.Sprintf("  Entries %d to %d were not known to be committed. They may have been, so they are restored.\n", h.Committed+1, h.Index))
		}
	}
	next := "start this server"
	if several || !alone {
		next = `start this server, and wait until it serves clients (gozkd ruok -ready). Only then start the others, each with an EMPTY data directory.
  The members of the old ensemble must not run again with their data: they don't mix with this one, but a quorum of them would serve the old state.`
	}
	c.say(c.env.Out, "\nNext: "+next+"\n")
}
