package consensus

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/gozkd/gozkd/consensus/internal/checkpoint"
	"github.com/gozkd/gozkd/consensus/internal/core"
	"github.com/gozkd/gozkd/internal/vfs"
)

// ErrCorruptCheckpoint is wrapped by the error of a checkpoint file that is damaged.
var ErrCorruptCheckpoint = checkpoint.ErrCorrupt

// checkpointFile is the checkpoint of a member on disk: the state and its core.Meta.
type checkpointFile struct {
	disk vfs.FS
	path string
}

// load reads the checkpoint, if any, and restores sm from it. The checkpoint's level must be one of
// levels. If the state is damaged, load returns the meta nevertheless, with the error.
func (c checkpointFile) load(which checkpoint.Transaction, levels LevelRange, sm StateMachine) (
	meta core.Meta, found bool, err error,
) {
	r, err := checkpoint.Open(c.disk, c.path, which)
	if errors.Is(err, fs.ErrNotExist) {
		return core.Meta{}, false, nil
	}
	if err != nil {
		return core.Meta{}, false, err
	}
	meta, err = c.restore(r, levels, sm)
	return meta, err == nil, err
}

// restore restores sm from r, and closes r.
func (c checkpointFile) restore(r *checkpoint.Reader, levels LevelRange, sm StateMachine) (meta core.Meta, err error) {
	defer func() { err = errors.Join(err, r.Close()) }()
	meta, err = core.DecodeMeta(r.Meta())
	switch {
	case errors.Is(err, ErrLevel):
		return core.Meta{}, fmt.Errorf("%w (%s)", err, c.path)
	case err != nil:
		return core.Meta{}, r.Invalid(err)
	}
	if err := levels.Check(meta.Level, "the checkpoint "+c.path); err != nil {
		return core.Meta{}, err
	}
	install, err := restoreFrom(r.Range, sm)
	if err != nil {
		return meta, r.Invalid(err)
	}
	if err := r.CheckFreelist(); err != nil {
		return meta, err
	}
	install()
	return meta, nil
}

type loadedCheckpoint struct {
	meta  core.Meta
	found bool
	// damage is the error of the newest checkpoint if it is damaged and meta is that of the
	// previous checkpoint. newest is then the index of the newest checkpoint, or 0 if unreadable.
	damage error
	newest uint64
}

// loadNewest restores sm from the newest checkpoint that is not damaged. The caller must check with
// loadedCheckpoint.continued that the log holds everything since.
func (c checkpointFile) loadNewest(levels LevelRange, sm StateMachine) (loadedCheckpoint, error) {
	meta, found, err := c.load(checkpoint.Newest, levels, sm)
	if !errors.Is(err, ErrCorruptCheckpoint) {
		return loadedCheckpoint{meta: meta, found: found}, err
	}
	previous, _, previousErr := c.load(checkpoint.Previous, levels, sm)
	if previousErr != nil {
		return loadedCheckpoint{}, err
	}
	return loadedCheckpoint{meta: previous, found: true, damage: err, newest: meta.Index}, nil
}

// continued returns l.damage unless the log of r continues the previous checkpoint beyond the
// damaged one, whose entries are committed. joined is the result of joining the previous checkpoint
// and the log.
func (l loadedCheckpoint) continued(r *recovered, joined error) error {
	switch last := r.meta.Index + uint64(len(r.entries)); {
	case l.damage == nil:
		return joined
	case joined != nil:
		return fmt.Errorf("%w; the previous checkpoint is intact, but the log does not continue it: %w", l.damage, joined)
	case r.useless || last <= r.meta.Index || last < l.newest:
		return fmt.Errorf("%w; the previous checkpoint, of entry %d, is intact, but the log does not continue it", l.damage, r.meta.Index)
	}
	r.state.Commit = max(r.state.Commit, l.newest)
	return nil
}

// restoreFrom passes pairs, without deleted keys, to sm's Restore. An error of pairs takes
// precedence: it is the reason that the state machine saw an incomplete state.
func restoreFrom(pairs checkpoint.Pairs, sm StateMachine) (install func(), err error) {
	errStopped := errors.New("the state machine stopped reading")
	var pairsErr error
	install, err = sm.Restore(func(yield func(k, v []byte) bool) {
		pairsErr = pairs(func(k, v []byte) error {
			if v != nil && !yield(k, v) {
				return errStopped
			}
			return nil
		})
	})
	if pairsErr != nil && !errors.Is(pairsErr, errStopped) {
		return nil, pairsErr
	}
	return install, err
}

// write applies changes since the checkpoint of index base, 0 for the first one, and replaces the
// meta. After an error the file holds the checkpoint of base or the new checkpoint.
func (c checkpointFile) write(base uint64, meta core.Meta, changes Changes) error {
	check := func(b []byte) error {
		switch {
		case b == nil && base == 0:
			return nil
		case b == nil:
			return fmt.Errorf("the checkpoint of entry %d is gone: put the file back before the next start, or clear the directories of this member in an ensemble", base)
		}
		before, err := core.DecodeMeta(b)
		if err == nil && before.Index != base { // the changes since another checkpoint are incomplete
			err = fmt.Errorf("it holds the state as of entry %d instead of entry %d", before.Index, base)
		}
		return err
	}
	return checkpoint.Merge(c.disk, c.path, check, meta.Append(nil), changes.Range)
}

func (c checkpointFile) replace(path string) error { return checkpoint.Replace(c.disk, path, c.path) }

// stream writes the file as a checkpoint stream. At a damaged page it returns ErrCorruptCheckpoint.
func (c checkpointFile) stream(w io.Writer, term uint64) (err error) {
	r, err := checkpoint.Open(c.disk, c.path, checkpoint.Newest)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return checkpoint.WriteStream(w, term, r.Meta(), r.Range)
}
