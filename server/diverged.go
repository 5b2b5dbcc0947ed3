package server

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/gozkd/gozkd/internal/vfs"
)

// ErrDiverged means that the state of this server is not that of the others.
var ErrDiverged = errors.New("server: the state differs from that of the other servers")

// divergedFile marks a data directory whose state differs. No server starts with such a directory.
const divergedFile = "DIVERGED"

// diverged stops this server for good: its answers may be wrong, and it must not help to decide.
func (s *leadership) diverged(index uint64) {
	err := fmt.Errorf("%w since entry %d at the latest", ErrDiverged, index)
	if s.cfg.Dir != "" {
		path := filepath.Join(s.cfg.Dir, divergedFile)
		what := fmt.Sprintf("%v.\nMove this data directory away and start the server with an empty one: it fetches the state from the others.\n", err)
		writeErr := vfs.WriteFile(s.cfg.hooks.DataFS, path, []byte(what))
		if writeErr == nil {
			writeErr = s.cfg.hooks.DataFS.SyncDir(s.cfg.Dir) // else a power loss could remove it
		}
		err = errors.Join(err, writeErr)
	}
	s.fail(err)
	s.life.Cancel() // set, because only a server that serves gets here; its owner may be slow to call Close
}

func (s *leadership) checkDiverged() error {
	if s.cfg.Dir == "" {
		return nil
	}
	path := filepath.Join(s.cfg.Dir, divergedFile)
	switch exists, err := vfs.Exists(s.cfg.hooks.DataFS, path); {
	case err != nil: // the mark may be there
		return fmt.Errorf("server: the data directory %s cannot be used: %w", s.cfg.Dir, err)
	case exists:
		return fmt.Errorf("%w, as %s says: move that directory away and start this server with an empty one, which fetches the state from the others", ErrDiverged, path)
	}
	return nil // no mark, or no directory yet
}
