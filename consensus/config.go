package consensus

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"net"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/consensus/internal/core"
	"github.com/gozkd/gozkd/consensus/peer"
	"github.com/gozkd/gozkd/internal/vfs"
)

// Batch and the types below are those of packages core and peer, which document them.
type (
	Batch      = core.Batch
	Request    = core.Request
	Target     = core.Target
	Reconciled = core.Reconciled
	Level      = core.Level
	LevelRange = core.LevelRange
	PeerStatus = core.PeerStatus
	PeerTLS    = peer.TLS
	PeerLink   = peer.Status
)

// MinPeerSecret is the minimum size of Config.PeerSecret, in bytes.
const MinPeerSecret = peer.MinSecret

// Level4 is the feature level of the first release.
const Level4 = core.Level4

// ErrLevel is wrapped by errors about data of a feature level that this program does not support.
var ErrLevel = core.ErrLevel

// StateMachine is the replicated state. The node calls its methods from one goroutine at a time.
type StateMachine interface {
	// Apply applies batches in order. The new state must depend on nothing except the old state and
	// the batches; the Refs must have no effect on the state. The batches belong to the node again
	// when Apply returns.
	Apply(batches []Batch)
	// Capture returns the changes since the last Capture, or since Restore. Another goroutine reads
	// the result while Apply goes on. A node in memory never calls Capture.
	Capture() Changes
	// CaptureAll returns the whole state in the same form. CaptureAll is called for backups and, by
	// a node in memory, for other members.
	CaptureAll() Changes
	// Restore makes a state of keys and values, in key order, which are the sum of all Changes so
	// far. install replaces the present state by this state. Keys and values are valid for one
	// iteration only. Restore is called at the start, and again when a checkpoint of another member
	// arrives: then on another goroutine, while Apply goes on with the present state. install is
	// called where Apply is called, or never.
	Restore(state iter.Seq2[[]byte, []byte]) (install func(), err error)
}

// Changes is a set of changed keys.
type Changes interface {
	// Len returns the approximate number of keys.
	Len() int
	// Range calls put for each key in order; a nil value means that the key was deleted. Range
	// stops at the first error of put, and returns that error.
	Range(put func(key, value []byte) error) error
}

// Config configures a node. StateMachine is required; the other fields have useful zero values.
type Config struct {
	// ID is this member's id, 1 to 255. Default: 1.
	ID uint64
	// Dir is the data directory. Empty: everything is in memory and is lost with the process.
	Dir string
	// Memory keeps the state of a node without Dir for the next node. Default: nothing is kept.
	Memory *Memory
	// LogDir is the directory of the write-ahead log. Default: Dir.
	LogDir string
	// FS is the file system of LogDir, DirFS that of Dir. Default: vfs.OS{}.
	FS, DirFS vfs.FS
	// StateMachine is the replicated state.
	StateMachine StateMachine
	// Validate returns an error for a request that the state machine does not understand. The
	// leader asks about each request before the request enters the log, also about those of other
	// members. A refused request keeps its number in its stream; it is applied with an empty
	// payload, which StateMachine must answer with the same error on all members. Validate must be
	// a cheap and pure function. Default: everything is valid.
	Validate func(payload []byte) error
	// Tick is the unit of raft's timers. Default: 100 ms.
	Tick time.Duration
	// Now is the wall clock for batch headers. Default: time.Now.
	Now func() time.Time
	// CheckpointRequests is the number of applied requests after which a checkpoint is written. It
	// may grow to four times that if checkpoints would otherwise take more than a fifth of the
	// time. Default: 100,000.
	CheckpointRequests int
	// CheckpointBytes is the same limit in bytes of applied requests. Default: 64 MiB.
	CheckpointBytes int64
	// SegmentBytes is the size of a log segment. Default: the WAL's.
	SegmentBytes int64
	// ArchiveBytes bounds the applied entries that are kept because they are not archived yet, in
	// memory and on disk: see Node.KeepFrom. 0: there is no archive.
	ArchiveBytes int
	// NoSync acknowledges without waiting for the disk (ZooKeeper's forceSync=no).
	NoSync bool
	// Voters and Learners are the initial members of a new ensemble, including this member. They
	// count only while there is no data. A member that is not among them waits to be let in.
	// Default: this member alone.
	Voters, Learners []uint64
	// Relayed: while this member has no vote, it asks a voter for entries, so that the leader need
	// not send them. The leader sends them if no voter does.
	Relayed bool
	// JoinOnly: while there is no data, this member takes no part in forming a new ensemble, and
	// waits to be let in by an existing ensemble. A member that has lost its disk then can't found
	// an empty ensemble in place of the ensemble that has the data.
	JoinOnly bool
	// Follows: the entries of an ensemble of which this member is no part come by Node.Follow.
	Follows bool
	// PeerListener accepts the connections of other members; the node closes it. nil: there are no
	// other members, ever.
	PeerListener net.Listener
	// PeerAddress is where other members reach this one: for those that do not know it yet. Empty:
	// a member that is to be added must wait for that.
	PeerAddress string
	// AddressPatience is how long one of a member's several addresses may take, as in peer.Config.
	AddressPatience time.Duration
	// PeerDial connects to other members. Default: TCP.
	PeerDial func(ctx context.Context, address string) (net.Conn, error)
	// PeerConns bounds the accepted connections of other members and strangers, as
	// peer.MaxIncoming. Default: 1,024.
	PeerConns int
	// PeerSecret is known to the members only: they prove to each other that they know it when they
	// connect. At least MinPeerSecret bytes. Without it, a member is known by its address.
	// PeerSecretOptional also accepts members that have none, which are known by their addresses.
	// Default: none.
	PeerSecret         []byte
	PeerSecretOptional bool
	// PeerTLS says which connections between members are encrypted. Default: none.
	PeerTLS PeerTLS
	// Levels are the feature levels that this member supports. Tests set them to act as another
	// version. Default: those of this program.
	Levels LevelRange
	// MaxLevel is the highest feature level that this member agrees to activate. It has no effect
	// on levels that are active. Default: no limit.
	MaxLevel Level
	// FormTicks is the number of ticks after which a majority of members without data forms a new
	// ensemble if the others can't be reached. Negative: this member has had data, so it never does
	// before all members have said that they have none. Default: 200.
	FormTicks int
	// OnMessage receives the messages that any member gave to Send, and must not block.
	OnMessage func(from uint64, message []byte)
	// OnReconciled is called, on the leader and where StateMachine.Apply is called, with the result
	// of a target that has a serial.
	OnReconciled func(Reconciled)
	// OnLost is called, where Apply is called, with the Refs of this node's requests that are
	// applied in a checkpoint of another member: their results are not known here.
	OnLost func(ref any)
	// MemoryBytes is how much memory the process may use: with little, fewer entries are kept for
	// other members, and checkpoints are written more often. Default: any.
	MemoryBytes int64
	// Crowded reports whether there is no memory for a part of a second state, of that many bytes
	// and keys, beside the present state. A checkpoint of another member is then read only when it
	// has taken the place of this member's, and Free must have dropped the present state. Free and
	// Restore are then called on another goroutine than Apply, which is not called until install
	// has returned; release is called at the end of Run. Default: never.
	Crowded func(bytes int64, keys int) bool
	Free    func() (release func())
	// Rand makes the numbers that tell ensembles and lives of members apart. Default: crypto/rand.
	Rand io.Reader
	// OnSync and OnCheckpoint are told the duration of each. They must not block.
	OnSync       func(took time.Duration, batches, bytes int)
	OnCheckpoint func(took time.Duration, changes int)
	// OnLeaderChange is called, in an ensemble, when this member can work under a leader again.
	// OnLeaderChange must not block.
	OnLeaderChange func(LeaderChange)
	// Logger receives the node's log lines. Default: none.
	Logger hclog.Logger
}

func (c *Config) ensureDefaults() error {
	var errs []error
	c.ID = cmp.Or(c.ID, 1)
	if c.ID > core.MaxMemberID {
		errs = append(errs, fmt.Errorf("consensus: ID is %d, allowed are 1 to %d", c.ID, core.MaxMemberID))
	}
	if c.Memory != nil && c.Dir != "" {
		errs = append(errs, errors.New("consensus: Memory is for nodes without Dir"))
	}
	if c.StateMachine == nil {
		errs = append(errs, errors.New("consensus: StateMachine is required"))
	}
	c.LogDir = cmp.Or(c.LogDir, c.Dir)
	c.FS = cmp.Or[vfs.FS](c.FS, vfs.OS{})
	c.DirFS = cmp.Or[vfs.FS](c.DirFS, vfs.OS{})
	c.Tick = cmp.Or(c.Tick, 100*time.Millisecond)
	if c.Tick < 0 {
		errs = append(errs, fmt.Errorf("consensus: Tick is %v, it must be positive", c.Tick))
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.CheckpointRequests = cmp.Or(c.CheckpointRequests, 100_000)
	c.MemoryBytes = cmp.Or(c.MemoryBytes, math.MaxInt64)
	c.CheckpointBytes = cmp.Or(c.CheckpointBytes, min(64<<20, c.MemoryBytes/32)) // a start reads all of it at once
	if c.ArchiveBytes < 0 {
		errs = append(errs, fmt.Errorf("consensus: ArchiveBytes is %d, it must be 0 or more", c.ArchiveBytes))
	}
	if c.CheckpointRequests < 0 || c.CheckpointBytes < 0 {
		errs = append(errs, fmt.Errorf("consensus: CheckpointRequests is %d and CheckpointBytes %d, both must be positive",
			c.CheckpointRequests, c.CheckpointBytes))
	}
	switch {
	case c.JoinOnly:
		c.Voters, c.Learners = nil, nil // names nobody to form an ensemble with, and so counts for nobody
	case c.Voters == nil && c.Learners == nil:
		c.Voters = []uint64{c.ID}
	}
	c.Levels = cmp.Or(c.Levels, core.SupportedLevels)
	c.FormTicks = cmp.Or(c.FormTicks, 200)
	if c.OnMessage == nil {
		c.OnMessage = func(uint64, []byte) {}
	}
	if c.OnReconciled == nil {
		c.OnReconciled = func(Reconciled) {}
	}
	if c.Crowded == nil {
		c.Crowded = func(int64, int) bool { return false }
	}
	if c.OnLost == nil {
		c.OnLost = func(any) {}
	}
	c.Rand = cmp.Or(c.Rand, rand.Reader)
	c.Logger = cmp.Or(c.Logger, hclog.NewNullLogger())
	return errors.Join(errs...)
}

func (c *Config) walDir() string         { return pathsOf(c.Dir, c.LogDir).log }
func (c *Config) checkpointPath() string { return pathsOf(c.Dir, c.LogDir).checkpoint }

func (c *Config) inMemory() bool { return c.Dir == "" }
