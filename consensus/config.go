package consensus

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
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
	// CaptureAll returns the whole state in the same form. It is called for backups, and for other members where everything lives in memory.
	CaptureAll() Changes
	// Restore makes a state of the keys and values, in key order, that all Changes so far add up to, and returns a function
	// that puts it in the place of the present one. Keys and values are valid for one step only. It is called at the start,
	// and again when a checkpoint of another member comes: then on another goroutine, while Apply goes on with the present
	// state. The function is called from where Apply is, or never.
	Restore(state iter.Seq2[[]byte, []byte]) (install func(), err error)
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
	// Memory keeps what a node without Dir has for the node after it. Default: nothing is kept.
	Memory *Memory
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
	// CheckpointRequests is after how many applied requests a checkpoint is written; after up to four times as many where checkpoints would take more
	// than a fifth of the time. Default: 100,000.
	CheckpointRequests int
	// CheckpointBytes is the same in bytes of applied requests. Default: 64 MiB.
	CheckpointBytes int64
	// SegmentBytes is the size of a log segment. Default: the WAL's.
	SegmentBytes int64
	// NoSync acknowledges without waiting for the disk (ZooKeeper's forceSync=no).
	NoSync bool
	// Voters and Learners are the members that a new ensemble begins with, this one among them. They count only while there is no data.
	// Default: this member alone. A member that is not among them waits to be let in.
	Voters, Learners []uint64
	// PeerListener is where other members come in; the node closes it. nil: there are no others, ever.
	PeerListener net.Listener
	// PeerDial connects to other members. Default: TCP.
	PeerDial func(ctx context.Context, address string) (net.Conn, error)
	// FormTicks is after how many ticks a majority of members without data forms a new ensemble, when the others can't be
	// reached. Default: 200.
	FormTicks int
	// OnMessage gets what Send of another member sent, or of this one. It must not block.
	OnMessage func(from uint64, message []byte)
	// OnSteered is told, on the leader, what became of a target with a serial. It is called like Apply.
	OnSteered func(Steered)
	// OnLost is told, like Apply, of requests of this node that are applied in a checkpoint that came from another member: their outcome
	// is not known here.
	OnLost func(ref any)
	// Rand makes what tells ensembles and lives of members apart. Default: crypto/rand.
	Rand io.Reader
	// OnSync, OnCheckpoint are told how long things took. They must not block.
	OnSync       func(took time.Duration, batches, bytes int)
	OnCheckpoint func(took time.Duration, changes int)
	// OnReign is told, in an ensemble, when this member can work under another leader than before. It must not block.
	OnReign func(Reign)
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
	if c.Memory != nil && c.Dir != "" {
		errs = append(errs, errors.New("consensus: Memory is for nodes without Dir"))
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
		c.CheckpointBytes = 64 << 20
	}
	if c.CheckpointRequests < 0 || c.CheckpointBytes < 0 {
		errs = append(errs, fmt.Errorf("consensus: CheckpointRequests is %d and CheckpointBytes %d, both must be positive",
			c.CheckpointRequests, c.CheckpointBytes))
	}
	if c.Voters == nil && c.Learners == nil {
		c.Voters = []uint64{c.ID}
	}
	if c.FormTicks == 0 {
		c.FormTicks = 200
	}
	if c.OnMessage == nil {
		c.OnMessage = func(uint64, []byte) {}
	}
	if c.OnSteered == nil {
		c.OnSteered = func(Steered) {}
	}
	if c.OnLost == nil {
		c.OnLost = func(any) {}
	}
	if c.Rand == nil {
		c.Rand = rand.Reader
	}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	return errors.Join(errs...)
}

func (c *Config) walDir() string         { return filepath.Join(c.LogDir, "wal") }
func (c *Config) checkpointPath() string { return filepath.Join(c.Dir, "checkpoint.db") }
