package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/adminclient"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive/store"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/clientflags"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/replica"
	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/vfs"
)

// source is a state that was read from a file or data directory.
type source struct {
	path string // of the file or data directory
	dir  bool
	held consensus.SavedState
	tree *datatree.Tree
}

// StatSource describes the file or directory that a command is to read. The error of a missing one
// says what to name.
func StatSource(path string) (os.FileInfo, error) {
	info, err := os.Stat(path)
	_, port, isAddress := strings.Cut(path, ":")
	if _, wrong := strconv.ParseUint(port, 10, 16); err != nil && isAddress && wrong == nil {
		return nil, fmt.Errorf("there is no file %s; to copy the state of a running server, name its admin endpoint: "+
			"gozkd backup --from http://HOST:8080 FILE", path)
	}
	if of := (*fs.PathError)(nil); errors.As(err, &of) {
		of.Path = store.ShownPath(path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w; name the dataDir of a server, a backup or another file of its data, or an archive: "+
			"file:///DIRECTORY or s3://BUCKET/PREFIX", err)
	}
	return info, err
}

// readSource reads a checkpoint file, or a data directory whose log is in logDir (default: in
// path). The pages of the file, the checksums of the log, and the digest of the state are verified.
func readSource(path, logDir string) (*source, error) {
	info, err := StatSource(path)
	if err != nil {
		return nil, err
	}
	s, r := &source{path: path, dir: info.IsDir()}, &replica.Replica{}
	if s.dir {
		file := checkpointIn(path)
		if err := checkDiverged(path); err != nil {
			return nil, err
		}
		if info, err := os.Stat(filepath.Join(logDir, "wal")); logDir != "" && (err != nil || !info.IsDir()) {
			return nil, fmt.Errorf("--log-dir %s has no directory wal: name the server's dataLogDir", logDir)
		}
		if s.held, err = consensus.ReadDir(path, logDir, r); err != nil {
			return nil, withCheckpointAlone(err, file)
		}
	} else {
		if logDir != "" {
			return nil, fmt.Errorf("%s is a file, and a log belongs to a data directory: leave the log directory out", path)
		}
		if s.held, err = consensus.ReadCheckpoint(path, r); err != nil {
			return nil, err
		}
	}
	if err := r.Tree.Check(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	s.tree = r.Tree
	return s, nil
}

// checkDiverged refuses a data directory whose state is known to be wrong.
func checkDiverged(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, "DIVERGED"))
	if err != nil {
		return nil
	}
	return fmt.Errorf("the state in %s differs from that of the other servers, so it may be wrong: %s"+
		"If there is no other source, name its last checkpoint, %s", dir, text, checkpointIn(dir))
}

func checkpointIn(dir string) string { return filepath.Join(dir, "checkpoint.db") }

// withCheckpointAlone adds the remedy to an error of reading the log: the checkpoint may be good,
// and a running server copies its state. A log of a later version is good too: another program must
// read it.
func withCheckpointAlone(err error, checkpoint string) error {
	if errors.Is(err, vfs.ErrLocked) {
		return fmt.Errorf("%w\nOr copy the state of the running server: gozkd backup --from http://HOST:8080 FILE", err)
	}
	if errors.Is(err, consensus.ErrNoState) || errors.Is(err, consensus.ErrLevel) || errors.Is(err, consensus.ErrCorruptCheckpoint) {
		return err
	}
	if _, statErr := os.Stat(checkpoint); errors.Is(statErr, fs.ErrNotExist) {
		return err
	}
	return &logError{err, checkpoint}
}

// logError is an error of a data directory whose log can't be read.
type logError struct {
	err        error
	checkpoint string
}

func (e *logError) Error() string {
	return fmt.Sprintf("%v\nIf the log can't be repaired, name the checkpoint alone, %s: all later writes are lost", e.err, e.checkpoint)
}

func (e *logError) Unwrap() error { return e.err }

// answerTimeout bounds the wait for the first byte of the answer: the server writes the backup to
// its own disk first.
const answerTimeout = 10 * time.Minute

func isURL(s string) bool { return strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://") }

// snapshotURL returns the URL of the snapshot command, unless from names another path itself.
func snapshotURL(from string) (string, error) {
	u, err := url.Parse(from)
	if err != nil {
		return "", fmt.Errorf("%q is no URL", store.ShownURL(from))
	}
	if u.Path == "" || u.Path == "/" || u.Path == "/commands" {
		u.Path, u.RawQuery = "/commands/snapshot", "streaming=true"
	}
	return u.String(), nil
}

// download writes the answer of the admin endpoint to a new file, and syncs it.
func download(ctx context.Context, from, auth, path string, security *clientflags.Security) (err error) {
	where, err := snapshotURL(from)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, where, nil)
	if err != nil {
		return err
	}
	resp, err := adminclient.Send(req, auth, answerTimeout, security)
	if err != nil {
		return adminclient.WithRemedy(err, "--from")
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") == "application/json" { // as ZooKeeper refuses
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 8<<10)) // the status is enough
		return adminclient.Refusal(resp, text, auth)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err = io.Copy(f, resp.Body); err != nil {
		err = fmt.Errorf("%s: the connection broke before the end of the backup: %w", store.ShownURL(where), err)
	} else {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
