package consensus

import (
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/internal/vfs"
)

// StateMachine is what the batches are applied to. The node calls it from one goroutine at a time.
type StateMachine interface {
	// Apply applies batches in order. It must depend on nothing but the state and the batches, except for what it does
	// with Refs. The batches belong to the node again when it returns.
	Apply(batches []Batch)
	// Capture returns what changed since the last Capture, or since Restore. The result is read by another goroutine
	// while Apply goes on. It is never called where everything lives in memory.
	Capture() Changes
	// Restore replaces the state by the keys and values, in key order, that all Changes so far add up to. Keys and values
	// are valid for one step only. It is called at most once, before anything else.
	Restore(state iter.Seq2[[]byte, []byte]) error
}

// Changes is a set of changed keys.
type Changes interface {
	// Len is about how many there are.
	Len() int
	// Range calls put for each key in order; a nil value deletes. It stops at the first error and returns it.
	Range(put func(key, value []byte) error) error
}

// Config says how a node works. StateMachine is required; the rest has a useful zero value.
type Config struct {
	// ID is this member's number, 1 to 254. Default: 1.
	ID uint64
	// Dir is the data directory. Empty: everything lives in memory, and is gone with the process.
	Dir string
	// LogDir is where the write-ahead log lives. Default: Dir.
	LogDir string
	// FS is the disk of the log. Checkpoints are on the operating system's disk. Default: vfs.OS{}.
	FS vfs.FS
	// StateMachine is what batches are applied to.
	StateMachine StateMachine
	// Tick is the unit of raft's timers. Default: 100 ms.
	Tick time.Duration
	// Now is the wall clock for batch headers. Default: time.Now.
	Now func() time.Time
	// CheckpointRequests is after how many applied requests a checkpoint is written. Default: 100,000.
	CheckpointRequests int
	// CheckpointBytes is after how many bytes of applied batches a checkpoint is written. Default: 256 MiB.
	CheckpointBytes int64
	// SegmentBytes is the size of a log segment. Default: the WAL's.
	SegmentBytes int64
	// NoSync acknowledges without waiting for the disk (ZooKeeper's forceSync=no).
	NoSync bool
	// OnSync, OnCheckpoint are told how long things took. They must not block.
	OnSync       func(took time.Duration, batches, bytes int)
	OnCheckpoint func(took time.Duration, changes int)
	// Logger gets the node's log lines. Default: none.
	Logger hclog.Logger
}

func (c *Config) ensureDefaults() error {
	var errs []error
	if c.ID == 0 {
		c.ID = 1
	}
	if c.ID > 254 {
		errs = append(errs, fmt.Errorf("consensus: ID is %d, allowed are 1 to 254", c.ID))
	}
	if c.StateMachine == nil {
		errs = append(errs, errors.New("consensus: StateMachine is required"))
	}
	if c.LogDir == "" {
		c.LogDir = c.Dir
	}
	if c.FS == nil {
		c.FS = vfs.OS{}
	}
	if c.Tick == 0 {
		c.Tick = 100 * time.Millisecond
	}
	if c.Tick < 0 {
		errs = append(errs, fmt.Errorf("consensus: Tick is %v, it must be positive", c.Tick))
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.CheckpointRequests == 0 {
		c.CheckpointRequests = 100_000
	}
	if c.CheckpointBytes == 0 {
		c.CheckpointBytes = 256 << 20
	}
	if c.CheckpointRequests < 0 || c.CheckpointBytes < 0 {
		errs = append(errs, fmt.Errorf("consensus: CheckpointRequests is %d and CheckpointBytes %d, both must be positive",
			c.CheckpointRequests, c.CheckpointBytes))
	}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	return errors.Join(errs...)
}

func (c *Config) walDir() string         { return filepath.Join(c.LogDir, "wal") }
func (c *Config) checkpointPath() string { return filepath.Join(c.Dir, "checkpoint.db") }
