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

// load reads the checkpoint, if there is one, and restores sm from it. With strict both meta pages
// of the file must be good. The checkpoint's level must be one of levels.
func (c checkpointFile) load(strict bool, levels LevelRange, sm StateMachine) (meta core.Meta, found bool, err error) {
	r, err := checkpoint.Open(c.disk, c.path, strict)
	if errors.Is(err, fs.ErrNotExist) {
		return core.Meta{}, false, nil
	}
	if err != nil {
		return core.Meta{}, false, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	meta, err = core.DecodeMeta(r.Meta())
	switch {
	case errors.Is(err, ErrLevel):
		return core.Meta{}, false, fmt.Errorf("%w (%s)", err, c.path)
	case err != nil:
		return core.Meta{}, false, r.Invalid(err)
	}
	if err := levels.Check(meta.Level, "the checkpoint "+c.path); err != nil {
		return core.Meta{}, false, err
	}
	install, err := restoreFrom(r.Range, sm)
	if err != nil {
		return core.Meta{}, false, r.Invalid(err)
	}
	if err := r.CheckFreelist(); err != nil {
		return core.Meta{}, false, err
	}
	install()
	return meta, true, nil
}

// restoreFrom passes pairs to sm's Restore. An error of pairs takes precedence: it is the reason
// that the state machine saw an incomplete state.
func restoreFrom(pairs checkpoint.Pairs, sm StateMachine) (install func(), err error) {
	errStopped := errors.New("the state machine stopped reading")
	var pairsErr error
	install, err = sm.Restore(func(yield func(k, v []byte) bool) {
		pairsErr = pairs(func(k, v []byte) error {
			if !yield(k, v) {
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

// write applies changes since the checkpoint of index base, and replaces the meta. For the first
// checkpoint base is ignored. After an error the file holds the checkpoint of base or the new
// checkpoint.
func (c checkpointFile) write(base uint64, meta core.Meta, changes Changes) error {
	check := func(b []byte) error {
		before, err := core.DecodeMeta(b)
		if err == nil && before.Index != base { // the changes since another checkpoint are incomplete
			err = fmt.Errorf("it holds the state as of entry %d instead of entry %d", before.Index, base)
		}
		return err
	}
	return checkpoint.Merge(c.disk, c.path, check, meta.Append(nil), changes.Range)
}

// replace puts a complete checkpoint file in the place of this file.
func (c checkpointFile) replace(path string) error { return checkpoint.Replace(c.disk, path, c.path) }

// stream writes the file as a checkpoint stream. At a damaged page, stream returns
// ErrCorruptCheckpoint.
func (c checkpointFile) stream(w io.Writer, term uint64) (err error) {
	r, err := checkpoint.Open(c.disk, c.path, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return checkpoint.WriteStream(w, term, r.Meta(), r.Range)
}
