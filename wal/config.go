package wal

import (
	"crypto/rand"
	"fmt"
	"io"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/internal/vfs"
)

const (
	// DefaultSegmentBytes is ZooKeeper's preAllocSize, 65536 KiB.
	DefaultSegmentBytes = 64 << 20
	// MinSegmentBytes is the smallest segment that Open accepts.
	MinSegmentBytes = 4 << 10
	// MaxSegmentBytes is the largest segment that Open accepts.
	MaxSegmentBytes = 4 << 30
	// MaxAppendBytes bounds what one Append writes, framing included.
	MaxAppendBytes = 1 << 30
)

// Config says how a log works. The zero value is good.
type Config struct {
	// FS is the disk. Default: vfs.OS{}.
	FS vfs.FS
	// SegmentBytes is the size from which a segment is full, in bytes, from MinSegmentBytes to MaxSegmentBytes. Default:
	// DefaultSegmentBytes. A single append that is larger gets a segment of its own size. It may differ from one Open to the next.
	SegmentBytes int64
	// NoSync leaves out the fdatasync of Append (ZooKeeper's forceSync=no). A power loss may then lose acknowledged
	// appends, and may leave a log that Open takes for corrupt. The death of the process alone loses nothing.
	NoSync bool
	// Logger gets a line for a torn tail (warn) and for segments that come and go (debug). Default: none.
	Logger hclog.Logger
	// OnSync is called after each successful sync of an append: how long write and sync took, how many batches with how
	// many bytes on disk they made. It runs on the goroutine of Append. Default: none, and then no clock is read.
	OnSync func(took time.Duration, batches int, bytes int)
	// Rand gives each segment its salt, 8 bytes. Default: crypto/rand.
	Rand io.Reader
}

func (c *Config) ensureDefaults() error {
	if c.FS == nil {
		c.FS = vfs.OS{}
	}
	if c.SegmentBytes == 0 {
		c.SegmentBytes = DefaultSegmentBytes
	}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	if c.Rand == nil {
		c.Rand = rand.Reader
	}
	if c.SegmentBytes < MinSegmentBytes || c.SegmentBytes > MaxSegmentBytes {
		return fmt.Errorf("wal: SegmentBytes is %d, allowed are %d to %d", c.SegmentBytes, MinSegmentBytes, int64(MaxSegmentBytes))
	}
	return nil
}
