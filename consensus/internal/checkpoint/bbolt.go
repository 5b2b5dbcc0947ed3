package checkpoint

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/gozkd/gozkd/internal/vfs"
)

// Saved is the disk of a tool. With it, [Open] returns a Reader that reads the pairs with bbolt,
// which did not write the file.
//
// bbolt trusts a file. Therefore Range first checks all pages that the pairs are on. If one meta
// page is damaged, the two could disagree which transaction counts, and bbolt is not asked.
type Saved struct{ vfs.OS }

// checkThenBbolt checks the pages of a bucket, and then calls visit with the pairs that bbolt
// reads.
func (r *Reader) checkThenBbolt(b bucket, visit func(key, value []byte) error) (err error) {
	if err := r.pages.pairs(b, func(_, _ []byte) error { return nil }); err != nil {
		return err
	}
	visiting := false
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		// A page that the system can't read is a fault, as the file is mapped.
		switch reason := recover().(type) {
		case nil:
		case interface{ Addr() uintptr }:
			err = fmt.Errorf("bbolt: a page of the mapped file: %w", syscall.EIO)
		default:
			if visiting {
				panic(reason)
			}
			err = fmt.Errorf("bbolt: %v", reason)
		}
	}()
	db, err := bolt.Open(r.path, 0, &bolt.Options{ReadOnly: true, Timeout: time.Second,
		OpenFile: func(string, int, os.FileMode) (*os.File, error) { return duplicate(r.file, r.path) }})
	if err != nil {
		return fmt.Errorf("bbolt: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return db.View(func(tx *bolt.Tx) error {
		return tx.Bucket([]byte(b.name)).ForEach(func(k, v []byte) error {
			visiting = true
			err := visit(k, v)
			visiting = false
			return err
		})
	})
}
