package moving

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"hash"
	"hash/adler32"
	"os"
	"path/filepath"
	"strconv"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/backup"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/clientflags"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/zkdata"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/internal/vfs"
	"github.com/gozkd/gozkd/internal/zkfiles"
)

const exportUsage = `usage: gozkd export --zookeeper DIR --from SOURCE [flags]

Writes the state of one moment to DIR/version-2 as a snapshot that ZooKeeper 3.5 to 3.9 starts from:
standalone, or as an ensemble, each of whose servers gets a copy of version-2 before the first of them
starts. Znodes keep everything, sequence numbers and zxids go on. DIR must be empty, except for myid and
version-2.unfinished, which a killed export leaves and the next one removes.

A client resumes its session if the session began on a ZooKeeper, or on a gozkd with
gozkd.zookeeperPasswords=true: ZooKeeper computes the password from the session's id. Other clients are
told that their session has expired, and its ephemerals go after its timeout.

SOURCE is one of
  http://HOST:8080  the admin endpoint of a running server
  DIR               the data directory of a stopped server
  FILE              a backup, or a copy of a stopped server's checkpoint.db

flags:
  --zookeeper DIR   the dataDir of the ZooKeeper server
  --for VERSION     3.5, 3.6 (to 3.8) or 3.9 (default); later ones read the files of earlier ones
  --id N            write the file myid with the number of the server
  --log-dir DIR     the directory of SOURCE's log, if its dataLogDir differs from its dataDir
  --auth-file FILE  as for gozkd backup
  --output FORMAT   text, or json (text)
` + clientflags.TLSUsage

// exportCommand is a running `gozkd export`.
type exportCommand struct {
	cli.Command
	dir, from, logDir, authFile, version string
	id                                   uint64
	json                                 bool
}

// Export runs `gozkd export`.
func Export(ctx context.Context, args []string, env cli.Env) int {
	c := &exportCommand{Command: cli.Command{Env: env, Name: "export", Usage: exportUsage}}
	flags := flag.NewFlagSet(c.Name, flag.ContinueOnError)
	flags.StringVar(&c.dir, "zookeeper", "", "")
	flags.StringVar(&c.from, "from", "", "")
	flags.StringVar(&c.logDir, "log-dir", "", "")
	flags.StringVar(&c.authFile, "auth-file", "", "")
	flags.StringVar(&c.version, "for", "3.9", "")
	flags.Var(memberid.Flag{ID: &c.id}, "id", "")
	flags.BoolVar(&c.json, "json", false, "") // the former name of --output json
	cli.OutputFlag(flags, &c.json)
	var secure clientflags.Flags
	secure.RegisterTLS(flags)
	return c.Do(flags, args, c.check, func([]string) error {
		security, err := secure.Resolve(env)
		if err = errors.Join(err, backup.CheckEmpty(c.dir, unfinished)); err != nil {
			return err
		}
		tree, err := backup.Load(ctx, c.from, c.logDir, c.authFile, env, security)
		if err != nil {
			return err
		}
		r, err := c.write(ctx, tree)
		if err == nil {
			c.print(r)
		}
		return err
	})
}

func (c *exportCommand) check(words []string) error {
	switch {
	case c.dir == "":
		return errors.New("--zookeeper is missing: name the dataDir to write. To copy a subtree as text, use gozkd cli export")
	case c.from == "":
		return errors.New("--from is missing: name the state to export")
	case len(words) > 0:
		return fmt.Errorf("%q is no flag", words[0])
	case c.version != "3.5" && c.version != "3.6" && c.version != "3.7" && c.version != "3.8" && c.version != "3.9":
		return fmt.Errorf("--for %s: want 3.5, 3.6, 3.7, 3.8 or 3.9", c.version)
	}
	return nil
}

// exported describes a finished export.
type exported struct {
	File       string   `json:"file"`
	Zxid       string   `json:"zxid"`
	Znodes     int      `json:"znodes"`
	Sessions   int      `json:"sessions"`
	Resumable  int      `json:"sessions_resumable"`
	TTLs       int      `json:"ttl_znodes"`
	Containers int      `json:"containers"`
	Digest     string   `json:"digest"`
	Large      []string `json:"larger_than_jute_maxbuffer,omitempty"`
}

// maxBuffer is the longest record that ZooKeeper's reader of snapshots accepts by default:
// jute.maxbuffer plus jute.maxbuffer.extrasize.
const maxBuffer = 2 * 0xfffff

// unfinished is the name of version-2 until the snapshot is whole.
const unfinished = "version-2.unfinished"

// write writes the snapshot. After an error the directory is empty again, for another attempt.
func (c *exportCommand) write(ctx context.Context, tree *datatree.Tree) (*exported, error) {
	if tree.LastZxid().Epoch() >= 1<<31-1 {
		return nil, fmt.Errorf("zxid %v leaves no room for further epochs", tree.LastZxid())
	}
	name := "snapshot." + strconv.FormatUint(uint64(tree.LastZxid()), 16)
	dir, work := filepath.Join(c.dir, "version-2"), filepath.Join(c.dir, unfinished)
	if _, err := os.Stat(work); err == nil {
		cli.Print(c.Env.Err, cli.Labelled("removing", "%s, which an interrupted export left", work))
	}
	if err := errors.Join(os.RemoveAll(work), os.MkdirAll(work, 0o755)); err != nil {
		return nil, err
	}
	r := &exported{
		File: filepath.Join(dir, name),
		Zxid: tree.LastZxid().String(), Znodes: tree.NumZnodes(),
	}
	err := vfs.WriteWhole(filepath.Join(work, name), "", func(f *os.File) error {
		err := c.fill(ctx, f, tree, r)
		if err == nil && c.id != 0 {
			err = os.WriteFile(filepath.Join(c.dir, "myid"), fmt.Appendln(nil, memberid.Number(c.id)), 0o644)
		}
		if err != nil {
			return err
		}
		if err := zkdata.Verify(ctx, f.Name(), tree); err != nil {
			return fmt.Errorf("the snapshot is not good: %w", err)
		}
		return nil
	})
	if err == nil {
		err = os.Rename(work, dir)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(work))
	}
	return r, errors.Join(vfs.OS{}.SyncDir(dir), vfs.OS{}.SyncDir(c.dir))
}

// sealedWriter writes a file and computes the checksum of everything before a seal.
type sealedWriter struct {
	w   *bufio.Writer
	sum hash.Hash32
	b   []byte
}

func (w *sealedWriter) write(b []byte) error {
	_, _ = w.sum.Write(b) // never fails
	_, err := w.w.Write(b)
	w.b = b[:0]
	return err
}

func (w *sealedWriter) seal() error { return w.write(zkfiles.AppendSeal(w.b[:0], w.sum.Sum32())) }

// fill writes the snapshot.
func (c *exportCommand) fill(ctx context.Context, f *os.File, tree *datatree.Tree, r *exported) error {
	w := &sealedWriter{w: bufio.NewWriterSize(f, 1<<18), sum: adler32.New()}
	var sessions []zkfiles.Session
	for s := range tree.Sessions() {
		sessions = append(sessions, zkfiles.Session{ID: s.ID, TimeoutMs: s.TimeoutMs})
		if s.Passwd == zkfiles.Password(s.ID) {
			r.Resumable++
		}
	}
	r.Sessions = len(sessions)
	if err := w.write(zkfiles.AppendSnapshotHeader(nil, sessions, tree.ZooKeeperACLs())); err != nil {
		return err
	}
	digest := uint64(0)
	err := tree.ZooKeeperZnodes(func(z *zkfiles.Znode) error {
		digest += zkfiles.ZnodeDigest(z.Path, z.Data, &z.Stat)
		switch kind, _, _ := zkfiles.KindOf(z.Stat.Owner); kind {
		case zkfiles.TTL:
			r.TTLs++
		case zkfiles.Container:
			r.Containers++
		}
		if len(z.Data) > maxBuffer && len(r.Large) < 10 {
			r.Large = append(r.Large, fmt.Sprintf("%s (%d bytes)", z.Path, len(z.Data)))
		}
		return errors.Join(w.write(z.Append(w.b[:0])), ctx.Err())
	})
	if err != nil {
		return err
	}
	r.Digest = fmt.Sprintf("%#x", digest)
	err = errors.Join(w.write(zkfiles.AppendTreeEnd(w.b[:0])), w.seal())
	if c.version >= "3.6" {
		d := zkfiles.SnapshotDigest{Zxid: tree.LastZxid(), Version: zkfiles.DigestVersion, Value: digest}
		err = errors.Join(err, w.write(d.Append(w.b[:0])), w.seal())
	}
	if c.version >= "3.9" {
		err = errors.Join(err, w.write(zkfiles.AppendLastZxid(w.b[:0], tree.LastZxid())), w.seal())
	}
	return errors.Join(err, w.w.Flush())
}

func (c *exportCommand) print(r *exported) {
	if c.json {
		c.PrintJSON(r)
		return
	}
	c.Line("exported", "%s, read back and verified", r.File)
	c.Line("state", "zxid %s, %d znodes, %d containers, %d with a time to live; digest %s", r.Zxid, r.Znodes, r.Containers, r.TTLs, r.Digest)
	c.Line("sessions", "%d, of which clients can resume %d: ZooKeeper computes the password from the id, and the others began on gozkd without gozkd.zookeeperPasswords=true", r.Sessions, r.Resumable)
	if r.TTLs > 0 {
		c.Line("NEEDED", "extendedTypesEnabled=true in ZooKeeper's zoo.cfg: without it ZooKeeper deletes the %d znodes with a time to live when it starts", r.TTLs)
	}
	for _, z := range r.Large {
		c.Line("NEEDED", "a larger -Djute.maxbuffer for ZooKeeper, because of %s", z)
	}
	cli.Print(c.Env.Out, fmt.Sprintf(`
Next: stop every gozkd server of the ensemble, and start ZooKeeper with dataDir=%s and no other dataLogDir. In an ensemble copy
  version-2 to each server before you start any: a majority of empty servers would found an empty ensemble.
`, c.dir))
}
