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

// Saved is the disk of a tool. From this disk, [Open] returns a Reader that reads the pairs with
// bbolt, an implementation that did not write the file.
//
// bbolt trusts a file. Therefore Range first checks all pages that the pairs are on. If one meta
// page is damaged, this package and bbolt could disagree which transaction counts, so this package
// reads the pairs itself.
type Saved struct{ vfs.OS }

// pairs checks the pages of r's state, and then calls visit with the pairs that bbolt reads.
func (Saved) pairs(r *Reader, visit func(key, value []byte) error) (err error) {
	if err := r.pages.pairs(r.state, func(_, _ []byte) error { return nil }); err != nil {
		return err
	}
	visiting := false
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		reason := recover()
		_, fault := reason.(interface{ Addr() uintptr })
		switch {
		case reason == nil:
		case visiting:
			panic(reason)
		case fault: // a page that the system can't read, as the file is mapped
			err = fmt.Errorf("bbolt: a page of the mapped file: %w", syscall.EIO)
		default:
			err = fmt.Errorf("bbolt: %v", reason)
		}
	}()
	db, err := bolt.Open(r.path, 0, &bolt.Options{ReadOnly: true, Timeout: time.Second,
		OpenFile: func(string, int, os.FileMode) (*os.File, error) { return duplicate(r.file, r.path) }})
	if err != nil {
		return fmt.Errorf("bbolt: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	// visit gets copies, so that a fault is not within visit, which may be the body of a range
	// loop: a recovered panic of such a body panics again.
	key, value := []byte{}, []byte{}
	return db.View(func(tx *bolt.Tx) error {
		return tx.Bucket([]byte(r.state.name)).ForEach(func(k, v []byte) error {
			key, value = append(key[:0], k...), append(value[:0], v...)
			visiting = true
			err := visit(key, value)
			visiting = false
			return err
		})
	})
}
