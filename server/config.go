package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/internal/vfs"
)

// maxMaxBuffer keeps a single request below what one append of the log may hold.
const maxMaxBuffer = 256 << 20

// DefaultMaxBuffer is ZooKeeper's default jute.maxbuffer, 0xfffff.
const DefaultMaxBuffer = 1<<20 - 1

// Config says how a server works. The zero value is a server in memory on a free port of the loopback. Names in
// parentheses are ZooKeeper's.
type Config struct {
	// Dir is the data directory (dataDir). Empty: all is in memory and gone with the process.
	Dir string
	// Memory keeps what a server without Dir has for the next server with the same Memory: a restart that forgets nothing, without a
	// disk. Default: what is in memory is gone when the server is closed.
	Memory *Memory
	// LogDir is where the write-ahead log lives (dataLogDir). Default: Dir.
	LogDir string
	// MemberID is this server's number, 1 to 254, the high byte of its session ids. Default: 1.
	MemberID uint8
	// Members are the servers of the ensemble, this one among them, as the server lines of zoo.cfg name them:
	// server.1=host:peerPort:electionPort[:role];[host:]clientPort. They say with whom a server without data forms a new
	// ensemble, and where the others are; once there is an ensemble, its members are changed by reconfig. Empty: a server alone.
	Members []string
	// PeerListen is the address for other members. Default: that of this server's own line.
	PeerListen string
	// PeerListener takes the other members' connections, instead of a listener on PeerListen. The server closes it.
	PeerListener net.Listener
	// PeerDial connects to other members. Default: TCP.
	PeerDial func(ctx context.Context, address string) (net.Conn, error)
	// InitLimit is for how many ticks a new ensemble waits for the last of its members before a majority begins without it.
	// SyncLimit is after how many ticks without a leader clients are disconnected. Defaults: 10 and 5.
	InitLimit, SyncLimit int
	// LinearizableReads makes every read wait until this server has applied what was committed anywhere when the read came. By
	// default reads are answered from what this server knows, as in ZooKeeper.
	LinearizableReads bool
	// Listen is the address for clients, host:port; port 0 is any free one. Default: 127.0.0.1:0.
	Listen string
	// Listener takes the clients instead of a listener on Listen: a Unix socket, TLS, or pipes in a test. The server closes it.
	Listener net.Listener
	// InProcess opens no client port: there are only the connections that Dial and Dialer make.
	InProcess bool

	// Tick is the granularity of session expiry (tickTime). Default: 2 s.
	Tick time.Duration
	// MinSessionTimeout and MaxSessionTimeout bound what clients may negotiate. Defaults: 2 and 20 ticks.
	MinSessionTimeout, MaxSessionTimeout time.Duration
	// MaxClientConns is the number of connections from one address (maxClientCnxns), MaxConns in all (maxCnxns). 0: the
	// default, which is 60 and no limit. Negative: no limit.
	MaxClientConns, MaxConns int
	// MaxBuffer is the largest frame in bytes (jute.maxbuffer). Default: DefaultMaxBuffer.
	MaxBuffer int32
	// OutstandingLimit is how many writes may be under way (globalOutstandingLimit); above it sockets are not read.
	// Default: 1,000.
	OutstandingLimit int

	// SnapCount is after how many writes a checkpoint is made (snapCount). Default: 100,000.
	SnapCount int
	// SegmentBytes is the size of a log segment (preAllocSize). Default: 64 MiB.
	SegmentBytes int64
	// NoSync acknowledges writes before they are on disk (forceSync=no): a power loss may lose them.
	NoSync bool
	// SyncWarning is how long a sync may take before it is logged (fsync.warningthresholdms). Default: 1 s.
	SyncWarning time.Duration

	// SlowRequest is from what time on a request gets a line in the log with the time of each of its stages. The lines are limited to a
	// few each second. Default: none is logged.
	SlowRequest time.Duration

	// SkipACL lets every ACL check pass (skipACL).
	SkipACL bool
	// SuperDigest is user:base64(sha1(user:password)) of who passes every ACL check (DigestAuthenticationProvider.superDigest).
	// Empty: nobody.
	SuperDigest string
	// DisableDigest refuses the digest scheme (DigestAuthenticationProvider.enabled=false).
	DisableDigest bool
	// EnforceQuota refuses writes beyond hard quotas (enforceQuota).
	EnforceQuota bool
	// ReconfigEnabled lets clients change the members of the ensemble (reconfigEnabled). Else they are told that it is disabled. A server
	// alone answers that reconfig is not implemented, as a standalone ZooKeeper does.
	ReconfigEnabled bool

	// Words are the four-letter words that are answered (4lw.commands.whitelist); "*" is all. srvr is always there.
	Words []string

	// ContainerInterval is how often empty containers and expired TTL znodes are collected (znode.container.checkIntervalMs).
	// Default: 1 minute. ContainerMaxPerMinute bounds it (znode.container.maxPerMinute). Default: 10,000.
	// ContainerNeverUsed is after what time a container that never had a child is collected
	// (znode.container.maxNeverUsedIntervalMs). Default: 5 minutes. Negative: never.
	ContainerInterval     time.Duration
	ContainerMaxPerMinute int
	ContainerNeverUsed    time.Duration

	// ClientKeepAlive turns on TCP keepalive of client connections (clientTcpKeepAlive).
	ClientKeepAlive bool
	// HandshakeTimeout is how long a connection may be without a session (nio.sessionlessCnxnTimeout). Default: 10 s.
	HandshakeTimeout time.Duration

	// Settings are shown by the conf word and are not interpreted.
	Settings []Setting
	// Version is what the server says of itself. Default: see Version.
	Version string
	// Logger gets the server's log lines. Default: none.
	Logger hclog.Logger
	// Now is the clock of sessions, TTLs and znode times; elections and other patience count on the runtime's. It may jump, see
	// MoveClock. Default: time.Now.
	Now func() time.Time
	// Rand makes session passwords. Default: crypto/rand.
	Rand io.Reader
	// FS is the disk of the write-ahead log. Default: the operating system's.
	FS vfs.FS
}

// ensureDefaults fills what is zero and reports everything that is wrong.
func (c *Config) ensureDefaults() error {
	setDefault(&c.MemberID, 1)
	setDefault(&c.Listen, "127.0.0.1:0")
	setDefault(&c.Tick, 2*time.Second)
	setDefault(&c.MinSessionTimeout, 2*c.Tick)
	setDefault(&c.MaxSessionTimeout, 20*c.Tick)
	setDefault(&c.MaxClientConns, 60)
	setDefault(&c.MaxBuffer, DefaultMaxBuffer)
	setDefault(&c.OutstandingLimit, 1000)
	setDefault(&c.InitLimit, 10)
	setDefault(&c.SyncLimit, 5)
	setDefault(&c.SnapCount, 100_000)
	setDefault(&c.SyncWarning, time.Second)
	setDefault(&c.ContainerInterval, time.Minute)
	setDefault(&c.ContainerMaxPerMinute, 10_000)
	setDefault(&c.ContainerNeverUsed, 5*time.Minute)
	setDefault(&c.HandshakeTimeout, 10*time.Second)
	setDefault(&c.Version, Version)
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Rand == nil {
		c.Rand = rand.Reader
	}
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("server: "+format, args...)) }
	if c.MemberID > 254 {
		bad("MemberID is %d, allowed are 1 to 254", c.MemberID)
	}
	for name, d := range map[string]time.Duration{
		"Tick": c.Tick, "MinSessionTimeout": c.MinSessionTimeout, "MaxSessionTimeout": c.MaxSessionTimeout,
		"ContainerInterval": c.ContainerInterval, "HandshakeTimeout": c.HandshakeTimeout, "SyncWarning": c.SyncWarning,
	} {
		if d < time.Millisecond {
			bad("%s is %v, it must be 1ms or more", name, d)
		}
	}
	if c.MinSessionTimeout > c.MaxSessionTimeout {
		bad("MinSessionTimeout %v is more than MaxSessionTimeout %v", c.MinSessionTimeout, c.MaxSessionTimeout)
	}
	if c.MaxBuffer < 1024 || c.MaxBuffer > maxMaxBuffer {
		bad("MaxBuffer is %d, allowed are 1024 to %d", c.MaxBuffer, maxMaxBuffer)
	}
	if c.InitLimit < 1 || c.SyncLimit < 1 {
		bad("InitLimit %d and SyncLimit %d must be positive", c.InitLimit, c.SyncLimit)
	}
	if c.OutstandingLimit < 1 || c.SnapCount < 1 || c.ContainerMaxPerMinute < 1 {
		bad("OutstandingLimit %d, SnapCount %d and ContainerMaxPerMinute %d must be positive", c.OutstandingLimit, c.SnapCount, c.ContainerMaxPerMinute)
	}
	for name, address := range map[string]string{"Listen": c.Listen, "PeerListen": c.PeerListen} {
		if err := checkAddress(address); err != nil {
			bad("%s is %q: %w", name, address, err)
		}
	}
	if c.SuperDigest != "" && !strings.Contains(c.SuperDigest, ":") {
		bad("SuperDigest is not user:base64(sha1(user:password))") // it may be a password, so it is not shown
	}
	if c.InProcess && c.Listener != nil {
		bad("InProcess is set, and so is Listener: choose one")
	}
	if c.Memory != nil && c.Dir != "" {
		bad("Dir is %q, and Memory is set: choose one", c.Dir)
	}
	return errors.Join(errs...)
}

// Memory is where servers without a data directory keep their state from one life to the next. The zero value is an empty one.
// One server at a time uses it; it must not be copied.
type Memory = consensus.Memory

// checkAddress returns what is wrong with a host:port to listen on. Whether it is one of this machine, and free, shows when it is used.
func checkAddress(address string) error {
	if address == "" {
		return nil
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	_, err = net.LookupPort("tcp", port)
	return err
}

func setDefault[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}
