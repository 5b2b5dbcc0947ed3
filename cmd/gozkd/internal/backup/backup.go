package backup

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/adminclient"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/clientflags"
	"github.com/gozkd/gozkd/internal/vfs"
)

const backupUsage = `usage: gozkd backup --from SOURCE [--log-dir DIR] [--auth-file FILE] FILE

Writes the state of one moment to FILE, which must not exist. The backup is read back and verified
before it is given its name.

SOURCE is one of
  http://HOST:8080  the admin endpoint of a running server: everything that was committed when the
                    backup begins. The server goes on serving clients
  DIR               the data directory of a stopped server: its checkpoint and all of its log
  FILE              a checkpoint file, such as a copy of checkpoint.db

flags:
  --from SOURCE     the state to copy
  --log-dir DIR     the directory of the log, if dataLogDir differs from dataDir
  --auth-file FILE  a file with the Authorization header for the admin endpoint: digest super:PASSWORD,
                    or a token, such as DATA-DIR/admin.token on the server's machine. Without the flag,
                    a server on this machine gets the token of the server that serve would run here
` + clientflags.TLSUsage

// Backup runs `gozkd backup`.
func Backup(ctx context.Context, args []string, env cli.Env) int {
	c := &command{cli.Command{Env: env, Name: "backup", Usage: backupUsage}}
	flags := flag.NewFlagSet(c.Name, flag.ContinueOnError)
	from := flags.String("from", "", "")
	logDir := flags.String("log-dir", "", "")
	authFile := flags.String("auth-file", "", "")
	var secure clientflags.Flags
	secure.RegisterTLS(flags)
	words, security, err := secure.Parse(env, flags, args)
	switch {
	case err != nil:
		return c.End(err)
	case secure.WantTLS() && !isURL(*from), security.TLS() && strings.HasPrefix(*from, "http://"):
		return c.Misused(errors.New("the flags of TLS are for an admin endpoint at https://HOST:8080"))
	case *from == "":
		return c.Misused(errors.New("--from is missing: name the state to copy"))
	case len(words) != 1:
		return c.Misused(errors.New("name one FILE to write to"))
	case words[0] == "-":
		return c.Misused(errors.New("- is no file: a backup is read back before it gets its name, so name a FILE"))
	}
	path := words[0]
	got, err := backup(ctx, *from, *logDir, *authFile, path, env, security)
	if err != nil {
		return c.Fail(err)
	}
	c.Line("backup", "%s, %s, read back and verified", path, sizeOf(path))
	c.describeState(got)
	return cli.OK
}

func backup(
	ctx context.Context, from, logDir, authFile, path string, env cli.Env, security *clientflags.Security,
) (*source, error) {
	if err := mustNotExist(path); err != nil {
		return nil, err
	}
	auth, err := authorization(from, logDir, authFile, env)
	if err != nil {
		return nil, err
	}
	if isURL(from) {
		return writeNew(path, func(temporary string) error { return download(ctx, from, auth, temporary, security) }, nil)
	}
	s, err := readSource(from, logDir)
	if err != nil {
		return nil, err
	}
	return writeNew(path, func(temporary string) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return s.held.WriteCheckpoint(temporary, s.tree.CaptureAll(), nil)
	}, s)
}

// authorization returns that for an admin endpoint. It refuses flags that the source does not take.
func authorization(from, logDir, authFile string, env cli.Env) (string, error) {
	switch {
	case !isURL(from) && authFile != "":
		return "", errors.New("--auth-file is for an admin endpoint: leave it out for a file or directory")
	case !isURL(from):
		return "", nil
	case logDir != "":
		return "", errors.New("--log-dir is for a data directory: leave it out for an admin endpoint")
	}
	return adminclient.Authorization(from, authFile, env)
}

// sizeOf describes the size of a file.
func sizeOf(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return "missing"
	}
	return humanize.IBytes(uint64(info.Size()))
}

// describeState prints a summary of a state.
func (c *command) describeState(s *source) {
	written := "never"
	if !s.held.Time.IsZero() {
		written = s.held.Time.UTC().Format(time.RFC3339)
	}
	c.Line("state", "zxid %v, last written %s, term %d, index %d", s.tree.LastZxid(), written, s.held.Term, s.held.Index)
	c.Line("holds", "%d znodes, %d of them ephemeral, %s in paths and data; %d sessions", s.tree.NumZnodes(), s.tree.NumEphemerals(),
		humanize.IBytes(uint64(s.tree.ApproximateDataSize())), s.tree.NumSessions())
	c.Line("digest", "%#016x", s.tree.Digest())
}

// command is a running subcommand of this package.
type command struct{ cli.Command }

// writeNew makes the file at path. fill writes the file under a temporary name. The file gets its
// final name after it was read back and verified, and never replaces another file. If want is not
// nil, the file must hold the same state.
func writeNew(path string, fill func(temporary string) error, want *source) (_ *source, err error) {
	if err := mustNotExist(path); err != nil {
		return nil, err
	}
	dir := filepath.Dir(path)
	folder, err := os.MkdirTemp(dir, "."+filepath.Base(path)+".unfinished-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	temporary := filepath.Join(folder, "checkpoint.db")
	if err := fill(temporary); err != nil {
		return nil, err
	}
	got, err := readSource(temporary, "")
	if err != nil {
		return nil, fmt.Errorf("the backup is not good: it was written, and reading it back failed: %w", err)
	}
	if want != nil && (got.tree.Digest() != want.tree.Digest() || got.tree.LastZxid() != want.tree.LastZxid() || got.held.Index != want.held.Index) {
		return nil, fmt.Errorf("the backup is not good: it has zxid %v and digest %#x, the source has %v and %#x",
			got.tree.LastZxid(), got.tree.Digest(), want.tree.LastZxid(), want.tree.Digest())
	}
	if err := giveName(temporary, path); err != nil {
		return nil, err
	}
	got.path = path
	return got, vfs.OS{}.SyncDir(dir)
}

func mustNotExist(path string) error {
	_, err := os.Lstat(path)
	switch {
	case err == nil:
		return fmt.Errorf("%s exists: a backup never replaces a file; choose another name", path)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return nil
}

// giveName gives the temporary file its name. A link never replaces a file. On a file system
// without links a file would be replaced if another process made it at this very moment.
func giveName(temporary, path string) error {
	err := os.Link(temporary, path)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := mustNotExist(path); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}
