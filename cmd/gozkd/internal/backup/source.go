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

// source is a state that was read from a file or data directory.
type source struct {
	path string // of the file or data directory
	dir  bool
	held consensus.SavedState
	tree *datatree.Tree
}

// readSource reads a checkpoint file, or a data directory whose log is in logDir (default: in
// path). The pages of the file, the checksums of the log, and the digest of the state are verified.
func readSource(path, logDir string) (*source, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	s, r := &source{path: path, dir: info.IsDir()}, &replica{}
	if s.dir {
		file := checkpointIn(path)
		if text, err := os.ReadFile(filepath.Join(path, "DIVERGED")); err == nil {
			return nil, fmt.Errorf("the state in %s differs from that of the other servers, so it may be wrong: %s"+
				"If there is no other source, --from %s takes its last checkpoint", path, text, file)
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
	if err := r.tree.Check(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	s.tree = r.tree
	return s, nil
}

func checkpointIn(dir string) string { return filepath.Join(dir, "checkpoint.db") }

// withCheckpointAlone adds to an error of reading the log that the checkpoint may be good.
func withCheckpointAlone(err error, checkpoint string) error {
	if errors.Is(err, consensus.ErrNoState) || errors.Is(err, consensus.ErrCorruptCheckpoint) || errors.Is(err, vfs.ErrLocked) {
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
	return fmt.Sprintf("%v\nIf the log can't be repaired, --from %s takes the checkpoint alone: all later writes are lost", e.err, e.checkpoint)
}

func (e *logError) Unwrap() error { return e.err }
