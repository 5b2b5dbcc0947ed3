package backup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/vfs"
)

// source is a state that was read: whose it was and of which moment, and what it is.
type source struct {
	path string // of the file or data directory
	dir  bool
	held consensus.Held
	tree *datatree.Tree
}

// readSource reads a checkpoint file, or a data directory with the log in logDir ("": in it). All of it is checked: the pages of the file, the
// sums of the log, the digest of the state.
func readSource(path, logDir string) (_ *source, err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case unreadable:
			err = fmt.Errorf("%s was written by another version of gozkd, use that one: %w", path, p.error)
		default:
			panic(p)
		}
	}()
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	s, r := &source{path: path, dir: info.IsDir()}, &replica{}
	if s.dir {
		file := checkpointIn(path)
		if text, err := os.ReadFile(filepath.Join(path, "DIVERGED")); err == nil {
			return nil, fmt.Errorf("the state in %s differs from that of the other servers, so it may be wrong: %s"+
				"If there is no other, its last checkpoint can be taken with --from %s", path, text, file)
		}
		if s.held, err = consensus.ReadDir(path, logDir, r); err != nil {
			return nil, withCheckpointAlone(err, file)
		}
	} else {
		if logDir != "" {
			return nil, fmt.Errorf("%s is a file: a log belongs to a data directory", path)
		}
		if s.held, err = consensus.ReadCheckpoint(path, r); err != nil {
			return nil, err
		}
	}
	if err := r.tree.Check(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	s.tree = r.tree
	return s, nil
}

func checkpointIn(dir string) string { return filepath.Join(dir, "checkpoint.db") }

// withCheckpointAlone says what can be done where the checkpoint may be good, and the log is not.
func withCheckpointAlone(err error, checkpoint string) error {
	if errors.Is(err, consensus.ErrNoState) || errors.Is(err, consensus.ErrCorruptCheckpoint) || errors.Is(err, vfs.ErrLocked) {
		return err
	}
	if _, statErr := os.Stat(checkpoint); errors.Is(statErr, fs.ErrNotExist) {
		return err
	}
	return &logError{err, checkpoint}
}

// logError says that a data directory can't be read with its log.
type logError struct {
	err        error
	checkpoint string
}

func (e *logError) Error() string {
	return fmt.Sprintf("%v\nIf the log can't be had, --from %s takes the checkpoint alone: all that was written after it is lost", e.err, e.checkpoint)
}

func (e *logError) Unwrap() error { return e.err }
