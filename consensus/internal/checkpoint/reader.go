package checkpoint

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/gozkd/gozkd/internal/vfs"
)

// Reader reads a checkpoint file. Until Close, a Reader holds a shared lock on the file, so that it
// sees a single transaction, and the next [Merge] waits. A Reader is not safe for concurrent use.
type Reader struct {
	path   string
	remedy string // for a damaged file
	file   vfs.File
	pages  *pageReader
	meta   []byte
	state  bucket
	saved  saved // reads the pairs with bbolt; nil: the Reader does
	err    error // of the file, that Range returned
}

// saved is a Saved as a Reader calls it. A program that makes no Saved a disk lacks bbolt.
type saved interface {
	pairs(r *Reader, visit func(key, value []byte) error) error
}

// Open opens a checkpoint file. Of a file without a transaction that is [Previous], the error wraps
// [ErrCorrupt].
//
// An error wraps [io/fs.ErrNotExist] or [ErrCorrupt], comes from the disk, or says that a writer
// has held its lock for more than a second.
func Open(disk vfs.FS, path string, which Transaction) (*Reader, error) {
	file, err := disk.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open checkpoint: %w", err)
	}
	r := &Reader{path: path, remedy: ofServer, file: file}
	if which == NewestOfTwo { // no server has the file
		r.remedy = ofCopy
	}
	r.saved, _ = disk.(saved)
	if err := lockFile(file, false); err != nil {
		return nil, errors.Join(fileError("lock", path, r.remedy, err), file.Close())
	}
	if err := r.begin(which); err != nil {
		return nil, errors.Join(fileError("read", path, r.remedy, err), file.Close())
	}
	return r, nil
}

func (r *Reader) begin(which Transaction) (err error) {
	if r.pages, err = newPageReader(r.file, which); err != nil {
		return err
	}
	if which == Previous || !r.pages.bothMetas {
		r.saved = nil
	}
	r.meta, r.state, err = r.pages.buckets()
	return err
}

// Meta returns the meta that the file holds.
func (r *Reader) Meta() []byte { return r.meta }

// Range calls visit for each pair of the state, as [Pairs] does. Range must be called at most once.
// An error of visit is returned unchanged; a damaged file makes an error that wraps [ErrCorrupt].
func (r *Reader) Range(visit func(key, value []byte) error) error {
	var visitErr error
	see := func(k, v []byte) error {
		visitErr = visit(k, v)
		return visitErr
	}
	var err error
	if r.saved != nil {
		err = r.saved.pairs(r, see)
	} else {
		err = r.pages.pairs(r.state, see)
	}
	if visitErr != nil {
		return visitErr
	}
	r.err = fileError("read", r.path, r.remedy, err)
	return r.err
}

// Invalid returns the error of a file whose contents its reader rejects with err. If err wraps an
// error of the file that Range returned, Invalid returns err unchanged.
func (r *Reader) Invalid(err error) error {
	if r.err != nil && errors.Is(err, r.err) {
		return err
	}
	return corrupt(r.path, r.remedy, err)
}

// CheckFreelist verifies, after Range, that no page is both free and in use.
func (r *Reader) CheckFreelist() error {
	_, _, err := r.pages.readFreelist()
	return fileError("read", r.path, r.remedy, err)
}

// Close closes the file and releases its lock.
func (r *Reader) Close() error { return r.file.Close() }

// buckets reads the two buckets: the meta, and where the state is.
func (p *pageReader) buckets() (meta []byte, state bucket, err error) {
	found, err := p.topLevel()
	if err != nil {
		return nil, bucket{}, err
	}
	err = p.pairs(found[0], func(k, v []byte) error {
		if bytes.Equal(k, metaKey) {
			meta = bytes.Clone(v)
		}
		return nil
	})
	if err == nil && meta == nil {
		err = errors.New("its meta is missing")
	}
	return meta, found[1], err
}
