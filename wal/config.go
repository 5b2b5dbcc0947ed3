package wal

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"io"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/internal/vfs"
)

const (
	// DefaultSegmentBytes is the default of ZooKeeper's preAllocSize, 65536 KiB.
	DefaultSegmentBytes = 64 << 20
	// MinSegmentBytes is the smallest segment that Open accepts.
	MinSegmentBytes = 4 << 10
	// MaxSegmentBytes is the largest segment that Open accepts.
	MaxSegmentBytes = 4 << 30
	// MaxAppendBytes is the maximum size of an Append, including the framing.
	MaxAppendBytes = 1 << 30
)

// Config configures a log. The zero value is valid.
type Config struct {
	// FS is the disk. Default: vfs.OS{}.
	FS vfs.FS
	// SegmentBytes is the size of a full segment, in bytes, from MinSegmentBytes to
	// MaxSegmentBytes. A larger append gets a segment of its own. The value may change between two
	// calls of Open. Default: DefaultSegmentBytes.
	SegmentBytes int64
	// NoSync omits the fdatasync of Append (ZooKeeper's forceSync=no). A power loss may then lose
	// acknowledged appends, or leave a log that Open rejects as corrupt. The death of the process
	// alone loses nothing.
	NoSync bool
	// From makes Open check the entries before that index without returning them, except the last
	// Keep bytes of them, which saves memory.
	From uint64
	Keep int64
	// MustExist makes Open return an error that wraps io/fs.ErrNotExist, and make nothing, if the
	// log has no segment.
	MustExist bool
	// Logger logs a torn append (warn) and new and removed segments (debug). Default: none.
	Logger hclog.Logger
	// OnSync is called after each successful sync of an append, on the goroutine of Append, with
	// the duration of write and sync, the number of batches, and their bytes on disk. Default:
	// none; no clock is read then.
	OnSync func(took time.Duration, batches int, bytes int)
	// Rand is the source of the 8-byte salt of each segment. Default: crypto/rand.
	Rand io.Reader
}

func (c *Config) ensureDefaults() error {
	c.FS = cmp.Or[vfs.FS](c.FS, vfs.OS{})
	c.SegmentBytes = cmp.Or(c.SegmentBytes, DefaultSegmentBytes)
	c.Logger = cmp.Or(c.Logger, hclog.NewNullLogger())
	c.Rand = cmp.Or(c.Rand, rand.Reader)
	if c.SegmentBytes < MinSegmentBytes || c.SegmentBytes > MaxSegmentBytes {
		return fmt.Errorf("wal: SegmentBytes is %d, it must be between %d and %d", c.SegmentBytes, MinSegmentBytes, int64(MaxSegmentBytes))
	}
	return nil
}
