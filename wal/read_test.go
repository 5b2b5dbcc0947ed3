package wal_test

import (
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"testing"

	"github.com/gozkd/gozkd/internal/testkit/vfstest"
	"github.com/gozkd/gozkd/wal"
)

// readThenOpen reads a log, then opens it. Both must return the same content or fail alike, and
// reading must change nothing.
func readThenOpen(cfg wal.Config) (*wal.Log, wal.Recovered, error) {
	looking := cfg
	looking.FS = vfstest.NewFaulty(cfg.FS, func(op vfstest.Op) error {
		switch op.Kind {
		case vfstest.OpOpen, vfstest.OpReadDir, vfstest.OpRead:
			return nil
		}
		return fmt.Errorf("reading does %s to %s", op.Kind, op.Path)
	})
	seen, readErr := wal.Read(dir, looking)
	l, rec, err := wal.Open(dir, cfg)
	switch {
	case errors.Is(readErr, fs.ErrNotExist) && err == nil && rec.State == nil && len(rec.Entries) == 0:
	case fmt.Sprint(readErr) != fmt.Sprint(err):
		return l, rec, errors.New("reading ends with " + fmt.Sprint(readErr) + ", opening with " + fmt.Sprint(err)) // it wraps neither, so that no test mistakes it for the expected error
	case err == nil && !reflect.DeepEqual(seen, rec): // after an error, seen is what precedes the damage
		return l, rec, fmt.Errorf("%d entries and %d torn bytes were read, and then %d and %d opened", len(seen.Entries), seen.TornBytes, len(rec.Entries), rec.TornBytes)
	}
	return l, rec, err
}

func TestRead_NoDirectory(t *testing.T) {
	if _, err := wal.Read(dir, wal.Config{FS: vfstest.NewMem()}); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := wal.Read(dir, wal.Config{FS: vfstest.NewMem(), SegmentBytes: 1}); err == nil {
		t.Error("a bad Config was taken")
	}
}
