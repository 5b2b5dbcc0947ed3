package consensus

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/gozkd/gozkd/internal/vfs"
	"github.com/gozkd/gozkd/wal"
)

const placeInterval = 5 * time.Second

// place is where the next start will look for the files that a node writes. If somebody removes,
// moves or replaces a directory while the node runs, or unmounts its disk, writes still succeed,
// but what they acknowledge is lost with the process. Without its lock file, another process may
// use the directory. In both cases the node must stop.
type place struct {
	cfg  *Config
	lock vfs.Lock // of the data directory

	// The log's goroutine uses these, or the loop, below the log's lock.
	log           *wal.Log
	checked       time.Time
	hasCheckpoint bool
}

// moved returns an error if err says that a file is not in its place. Otherwise it returns nil: the
// next write will show whether the disk works.
func moved(err error) error {
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, vfs.ErrReplaced) {
		return nil
	}
	return fmt.Errorf("consensus: this server's files were removed, moved or replaced while it ran, so what it writes is lost: %w: "+
		"put them back before the next start or, %s", err, remedy)
}

func (p *place) check() error {
	p.checked = time.Now()
	for _, inPlace := range []func() error{p.lock.InPlace, p.log.InPlace, p.checkpoint} {
		if err := moved(inPlace()); err != nil {
			return err
		}
	}
	return nil
}

// checkNowAndThen calls check if that is due. A nil place is in memory.
func (p *place) checkNowAndThen() error {
	if p == nil || time.Since(p.checked) < placeInterval {
		return nil
	}
	return p.check()
}

// checkpoint returns an error if the checkpoint was there, and is not there any more. It does not
// open the file, which Windows could not replace meanwhile.
func (p *place) checkpoint() error {
	path := p.cfg.checkpointPath()
	names, err := p.cfg.DirFS.ReadDir(filepath.Dir(path))
	has := slices.Contains(names, filepath.Base(path))
	if err == nil && p.hasCheckpoint && !has {
		err = &fs.PathError{Op: "find", Path: path, Err: fs.ErrNotExist}
	}
	p.hasCheckpoint = p.hasCheckpoint || has
	return err
}
