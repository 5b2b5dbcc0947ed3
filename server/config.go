package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/audit"
	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/internal/confighook"
	"github.com/gozkd/gozkd/internal/memlimit"
	"github.com/gozkd/gozkd/internal/serverlist"
	"github.com/gozkd/gozkd/internal/sloglog"
	"github.com/gozkd/gozkd/internal/version"
	"github.com/gozkd/gozkd/internal/vfs"
	"github.com/gozkd/gozkd/server/identity"
)

// maxMaxBuffer keeps a single request below the size that one append of the log may have.
const maxMaxBuffer = 256 << 20

// DefaultMaxBuffer is ZooKeeper's default jute.maxbuffer, 0xfffff.
const DefaultMaxBuffer = 1<<20 - 1

// defaultWatchMemory is the default of Config.WatchMemory if memory is not scarce: a million
// watches on paths of 40 bytes.
const defaultWatchMemory = 192 << 20

// defaultClientMemory is the default of Config.ClientMemory if memory is not scarce.
const defaultClientMemory = 128 << 20

// Config configures a server. The zero value is a server in memory on a free port of the loopback
// interface. Names in parentheses are ZooKeeper's. Server.Reload changes the fields with the tag
// reload:"live".
type Config struct {
	// Dir is the data directory (dataDir). Empty: everything is in memory and lost with the
	// process.
	Dir string
	// Memory keeps the state of a server without Dir for the next server with the same Memory: a
	// restart that loses nothing, without a disk. Default: the state is lost at the close.
	Memory *Memory `reload:"handed in"`
	// LogDir is the directory of the write-ahead log (dataLogDir). Default: Dir.
	LogDir string
	// MemberID is this server's number, 1 to 254, and the high byte of its session ids. The server
	// server.0 has the MemberID 255, and ids that begin with 0. Default: 1.
	MemberID uint8
	// Members lists the servers of the ensemble, including this one, in the form of the server
	// lines of zoo.cfg: server.1=host:peerPort:electionPort[:role];[host:]clientPort. A server
	// without data forms a new ensemble with them, and reaches them at these addresses. The members
	// of an existing ensemble are changed by reconfig. Empty: a standalone server.
	Members []string
	// JoinOnly: a server without data takes no part in forming a new ensemble, and waits until one
	// that exists lets it in (db.autocreate=false without the file initialize). So a member that
	// lost its disk can't found an empty ensemble beside the ensemble that has the data.
	JoinOnly bool
	// PeerListen is the address for other members, or several, separated by |. Default: the
	// addresses in this server's own line.
	PeerListen string
	// PeerListener accepts the other members' connections, instead of a listener on PeerListen. The
	// server closes it.
	PeerListener net.Listener `reload:"handed in"`
	// PeerDial connects to other members. Default: TCP.
	PeerDial func(ctx context.Context, address string) (net.Conn, error) `reload:"handed in"`
	// PeerSecret is known to the members only, at least 16 random bytes: they prove to each other
	// that they know it when they connect. Members with different secrets refuse each other. A
	// member with a secret refuses members without, unless it sets PeerSecretOptional. Empty: a
	// member is known by its address, at which it is asked whether a connection is its own.
	PeerSecret         []byte
	PeerSecretOptional bool
	// PeerTLS says which connections between members are encrypted, and which certificates are
	// accepted. An ensemble moves to TLS in three steps of its Mode, each made on all members, by
	// Reload or by a restart: PeerTLSAccepted, PeerTLSDialed, PeerTLSRequired. Default: none
	// (sslQuorum).
	PeerTLS PeerTLS `reload:"live"`
	// RelayedObservers makes this server, if it is an observer, follow a follower and not the
	// leader (observerMasterPort). No further port is opened.
	RelayedObservers bool
	// OneVoter lets a reconfig leave one voter (standaloneEnabled=false). Default: two at least.
	OneVoter bool
	// MultiAddress lets the lines of a reconfig have several addresses (multiAddress.enabled).
	// Those of Members may have several in any case, separated by |: this server listens on each of
	// its own, and tries those of others one after the other, each for at most AddressPatience
	// (multiAddress.reachabilityCheckTimeoutMs). Default: 1 s.
	MultiAddress    bool
	AddressPatience time.Duration
	// LeaderWithoutClients makes the leader refuse clients while the ensemble has other members,
	// which serve them (leaderServes=no). A server that becomes leader closes the connections of
	// its clients.
	LeaderWithoutClients bool
	// InitLimit is for how many ticks a new ensemble waits for its last members before a majority
	// begins without them. SyncLimit is after how many ticks without a leader clients are
	// disconnected. Defaults: 10 and 5.
	InitLimit, SyncLimit int
	// ReadOnlyMode lets a server that is not in touch with a leader serve reads to clients that
	// accept such a server (readonlymode.enabled). Their sessions are local, and end with the mode.
	ReadOnlyMode bool `reload:"live"`
	// LocalSessions opens a new session without a write to the log (localSessionsEnabled). Only
	// this server knows it: elsewhere its client is told that it has expired. It cannot have
	// ephemeral znodes, unless LocalSessionUpgrades is set: then the first one makes it a session
	// like others (localSessionsUpgradingEnabled), and new sessions are local only from feature
	// level 3 on. No effect on a standalone server.
	LocalSessions, LocalSessionUpgrades bool
	// ZooKeeperPasswords gives new sessions the passwords that ZooKeeper computes from their ids,
	// so that clients can resume them on a ZooKeeper that takes over the state, from feature level
	// 3 on. Whoever knows the id of such a session can take the session over.
	ZooKeeperPasswords bool
	// LinearizableReads makes every read wait until this server has applied everything that was
	// committed anywhere when the read came. By default a read is answered from the state of this
	// server, as in ZooKeeper.
	LinearizableReads bool
	// Listen is the address for clients, host:port; port 0 is any free port. Default: 127.0.0.1:0.
	// With ReconfigEnabled, a reconfig that changes the client address in this server's line moves
	// the port, unless ListenFixed is set. SecureListen stays.
	Listen      string
	ListenFixed bool
	// Listener accepts clients instead of a listener on Listen: a Unix socket, or pipes in a test.
	// The server closes it. For TLS see SecureListener.
	Listener net.Listener `reload:"handed in"`
	// TLS has the certificates that clients see and must present. SecureListen, SecureListener
	// and PortUnification need it. Each handshake reads it, so GetConfigForClient may follow
	// changes of certificates. A client's certificate is an identity only if it was verified: set
	// ClientAuth to tls.VerifyClientCertIfGiven or tls.RequireAndVerifyClientCert (ssl.clientAuth
	// want, need).
	TLS *tls.Config `reload:"live"`
	// SecureListen is the address of a second port for clients, for TLS only (secureClientPort).
	// Empty: there is none.
	SecureListen string
	// SecureListener accepts clients of the secure port, instead of a listener on SecureListen. It
	// returns connections without TLS: the server adds TLS. The server closes it.
	SecureListener net.Listener `reload:"handed in"`
	// PortUnification makes the client port accept TLS, too: the first bytes of a connection decide
	// (client.portUnification).
	PortUnification bool `reload:"live"`
	// HandshakeLimit bounds the TLS handshakes under way (netty.server.outstandingHandshake.limit).
	// When it is reached, a host with fewer of them than another takes the place of the oldest of
	// the other's; otherwise its connection is closed. Default: 250. Negative: no limit.
	HandshakeLimit int `reload:"live"`
	// Certificates tells the metrics, srvr and probes about the certificates of TLS and PeerTLS. It
	// is called for each answer, from any goroutine. Nil: they say nothing about certificates.
	Certificates func() Certificates `reload:"handed in"`
	// ListenBacklog is how many connections of Listen may wait to be accepted
	// (clientPortListenBacklog). The system may have a lower limit. Default: the system's limit.
	// Without effect on Windows.
	ListenBacklog int
	// InProcess opens no client port: the only connections are those that Dial and Dialer make.
	InProcess bool `reload:"handed in"`

	// Tick is the granularity of session expiry (tickTime). Default: 2 s.
	Tick time.Duration
	// MinSessionTimeout and MaxSessionTimeout bound session timeouts. Defaults: 2 and 20 ticks.
	MinSessionTimeout, MaxSessionTimeout time.Duration `reload:"live"`
	// MaxClientConns bounds the connections from one address (maxClientCnxns), MaxConns all
	// connections (maxCnxns). 0: the default, which is 60 per address and, in all, as many as the
	// process's limit of file descriptors allows, with a reserve for everything else; in memory
	// there is no such limit. Negative: no limit.
	MaxClientConns, MaxConns int `reload:"live"`
	// ConnectionThrottle bounds how many connect requests are answered. Default: none is dropped.
	ConnectionThrottle ConnectionThrottle `reload:"live"`
	// MaxBuffer is the largest frame in bytes (jute.maxbuffer). Default: DefaultMaxBuffer.
	MaxBuffer int32
	// OutstandingLimit bounds the writes under way (globalOutstandingLimit). Above it, sockets are
	// not read. Default: 1,000.
	OutstandingLimit int `reload:"live"`
	// ClientMemory bounds the bytes that wait for all clients: output that they have not read,
	// and requests that they have not sent completely. Beyond it the slowest clients are
	// disconnected. Default: 128 MiB, or an eighth of the memory that the process may use if that
	// is less (GOMEMLIMIT, the limit of the container, the machine's memory), but at least the
	// smallest value that is allowed, 8 times MaxBuffer.
	ClientMemory int64 `reload:"live"`
	// WatchMemory bounds, in bytes, the watches of all clients together, 56 bytes each and
	// 104 for each path with its text. Beyond it the clients whose addresses have most of them are
	// disconnected. Default: 192 MiB, or a quarter of the memory that the process may use if that
	// is less: clients that are disconnected set their watches again, and gain nothing while the
	// data could give way.
	WatchMemory int64 `reload:"live"`
	// WatchReplay is how many bytes of changes the server remembers for clients that reconnect:
	// setWatches2 sends the events of persistent watches that a client missed meanwhile. Negative:
	// none. Default: a 64th of the memory (GOMEMLIMIT, the container's or the machine's), at most
	// 8 MiB.
	WatchReplay int64
	// DataLimit is how many bytes of memory may be in use before requests that add data are refused
	// with proto.ErrQuotaExceeded: by the data, the sessions, the clients and whatever else lives
	// in the process. In an ensemble the member that can hold least decides. Negative: no limit.
	// Default: DataLimitPercent of the memory that the process may use, as of New. See
	// docs/guide/capacity.md.
	DataLimit int64
	// DataLimitPercent, from 1 to 100, has no effect if DataLimit is set. Default: 75.
	DataLimitPercent int
	// DiskReserve is how many bytes must be free on the disks of Dir and LogDir, besides those of
	// checkpoints, for more data to be accepted. If it is set, this member then decides for all.
	// Negative: the disks do not count. Default: twice SegmentBytes, at most a quarter of the disk;
	// then the disks of a majority of the voters decide, because a member whose disk is full stops,
	// and the others go on.
	DiskReserve int64
	// RequestThrottle decides about writes that wait for others. Default: they wait.
	RequestThrottle RequestThrottle `reload:"live"`
	// BudgetWait is how long a request over the budget of its subtree or identity may wait, but no
	// longer than a third of its session's timeout. Then it fails with proto.ErrThrottledOp.
	// Default: 1 s. See docs/adr/0015-budgets-per-tenant.md.
	BudgetWait time.Duration `reload:"live"`
	// IgnoreBudgets lets requests pass whatever budgets there are (gozkd.enforceBudgets=false).
	IgnoreBudgets bool `reload:"live"`
	// Requests with more than LargeRequestThreshold bytes (largeRequestThreshold) are large. The
	// connection of a large request is closed if the large writes under way would have more than
	// LargeRequestMaxBytes (largeRequestMaxBytes). Defaults: none is large; 100 MiB.
	LargeRequestThreshold, LargeRequestMaxBytes int

	// SnapCount is after how many writes a checkpoint is made (snapCount). Default: 100,000.
	SnapCount int
	// SegmentBytes is the size of a log segment (preAllocSize), or the limit of file sizes (ulimit
	// -f) if that is less. Default: 64 MiB.
	SegmentBytes int64
	// ArchiveBytes bounds how much of the log is kept, in memory and on disk, because it is not
	// archived yet: see Backups.KeepLog. 0: there is no archive.
	ArchiveBytes int
	// ArchiveStats tells the metrics about the archive. It is called for each answer, from any
	// goroutine. Nil: there are no such metrics.
	ArchiveStats func() ArchiveStats `reload:"handed in"`
	// Standby: this server has no leader. It is read-only, whatever ReadOnlyMode says, and gets the
	// log of the ensemble whose state is in Dir by Backups.Follow. Start does not return before its
	// context ends. MemberID is that of the directory; there are no Members.
	Standby bool
	// StandbyStats tells the metrics how a standby follows, as ArchiveStats does.
	StandbyStats func() StandbyStats `reload:"handed in"`
	// NoSync acknowledges writes before they are on disk (forceSync=no): power loss may lose them.
	NoSync bool
	// SyncWarning is the duration above which a sync is logged (fsync.warningthresholdms). Default:
	// 1 s.
	SyncWarning time.Duration `reload:"live"`

	// SlowRequest is the duration from which on a request is logged with the time of each of its
	// stages. There are at most a few such lines per second. Default: none is logged.
	SlowRequest time.Duration `reload:"live"`

	// RefuseTTL refuses to create znodes with a time to live (extendedTypesEnabled=false), once the
	// ensemble has feature level 2.
	RefuseTTL bool `reload:"live"`
	// SkipACL lets every ACL check pass (skipACL).
	SkipACL bool
	// SuperDigest is user:base64(hash(user:password)), by DigestAlgorithm, of the user that passes
	// every ACL check (DigestAuthenticationProvider.superDigest). Empty: there is none.
	SuperDigest string `reload:"live"`
	// DigestAlgorithm is the hash of the digest scheme, as Java names it: SHA1, SHA-224, SHA-256,
	// SHA-384, SHA-512, or SHA3 with one of these lengths (DigestAuthenticationProvider.digestAlg).
	// Identities in ACLs have this hash, and so has SuperDigest. It must be the same on all
	// servers. Default: SHA1.
	DigestAlgorithm string
	// DisableDigest refuses the digest scheme (DigestAuthenticationProvider.enabled=false).
	DisableDigest bool `reload:"live"`
	// Auth is how clients prove who they are, except for digest.
	Auth Authentication `reload:"live"`
	// EnforceQuota refuses writes beyond hard quotas (enforceQuota).
	EnforceQuota bool `reload:"live"`
	// RefuseUnreadable refuses a write after which the reply with a znode, or with a list of
	// children, would be larger than MaxBuffer. Otherwise such a write is accepted, as by
	// ZooKeeper, and a line in the log names each znode whose list of children has become that
	// long.
	RefuseUnreadable bool
	// MaxFeatureLevel is the highest feature level that this server agrees to activate. As long as
	// a member of the ensemble holds the level back, every member can go back to its previous
	// version. It has no effect on levels that are active. 0: the highest level of this version.
	MaxFeatureLevel int `reload:"live"`
	// ReconfigEnabled lets clients change the members of the ensemble (reconfigEnabled). A server
	// alone does not implement reconfig, as a standalone ZooKeeper does not.
	ReconfigEnabled bool `reload:"live"`

	// Audit gets the events of the audit log: each write that a client of this server made or tried
	// to make, sessions, authentication, and reads that an ACL refused or that AuditReads names.
	// Nil: no event is made. If the Sink is an audit.Backpressure, clients wait for it; if it is an
	// audit.Counter, the metrics contain its counts. The server does not close it.
	Audit audit.Sink `reload:"handed in"`
	// AuditReads lists znodes: reads of these, and of znodes below them, are in the audit log.
	AuditReads []string

	// Words lists the four-letter words that are answered (4lw.commands.whitelist); "*" is all.
	// srvr is always answered.
	Words []string `reload:"live"`

	// ContainerInterval is how often empty containers and expired TTL znodes are collected
	// (znode.container.checkIntervalMs). Default: 1 minute. ContainerMaxPerMinute bounds their
	// number (znode.container.maxPerMinute). Default: 10,000. ContainerNeverUsed is how long a
	// container that never had a child is kept (znode.container.maxNeverUsedIntervalMs). Default: 5
	// minutes. Negative: forever.
	ContainerInterval     time.Duration
	ContainerMaxPerMinute int           `reload:"live"`
	ContainerNeverUsed    time.Duration `reload:"live"`

	// ClientKeepAlive turns on TCP keepalive of client connections (clientTcpKeepAlive).
	ClientKeepAlive bool
	// HandshakeTimeout is how long a connection may be without a session
	// (nio.sessionlessCnxnTimeout). Default: 10 s.
	HandshakeTimeout time.Duration `reload:"live"`

	// Settings are shown by the conf word and not interpreted.
	Settings []Setting `reload:"live"`
	// Version is the version that the server names, of letters, digits, dots and hyphens. Default:
	// Version, the commit, and the release of Go, such as "0.1.0-f70422a5f4b5-go1.26.8".
	Version string `reload:"handed in"`
	// Logger gets the server's log lines: of those with the same message, except at the levels
	// debug and trace, at most 20 at once and one per second afterwards. Default: none.
	Logger hclog.Logger `reload:"handed in"`
	// Slog gets the log lines instead of Logger, with the same limits.
	Slog *slog.Logger `reload:"handed in"`
	// Now is the clock of sessions, TTLs and znode times. Elections and other timeouts use the
	// runtime's clock. Now may jump, see MoveClock. Default: time.Now.
	Now func() time.Time `reload:"handed in"`
	// Rand is the source of session passwords, of the ids of local sessions, and of raft's random
	// numbers. The server makes one call of Read at a time. Default: crypto/rand.
	Rand io.Reader `reload:"handed in"`

	hooks  confighook.Hooks
	levels consensus.LevelRange // tests act as other versions
}

// complete sets zero fields to their defaults, and returns Members, and all errors.
func (c *Config) complete() (serverlist.Set, error) {
	err := c.ensureDefaults()
	members, membersErr := c.parseMembers()
	return members, errors.Join(err, membersErr)
}

// ensureDefaults sets zero fields to their defaults, and returns all errors in the others.
func (c *Config) ensureDefaults() error {
	c.MemberID = cmp.Or(c.MemberID, 1)
	c.Listen = cmp.Or(c.Listen, "127.0.0.1:0")
	c.Tick = cmp.Or(c.Tick, 2*time.Second)
	tick := min(max(c.Tick, time.Millisecond), maxTick) // a wrong Tick must not make the defaults wrong, too
	c.MinSessionTimeout = cmp.Or(c.MinSessionTimeout, 2*tick)
	c.MaxSessionTimeout = cmp.Or(c.MaxSessionTimeout, 20*tick)
	c.MaxClientConns = cmp.Or(c.MaxClientConns, 60)
	c.MaxBuffer = cmp.Or(c.MaxBuffer, DefaultMaxBuffer)
	memory := memlimit.Available()
	c.DataLimitPercent = cmp.Or(c.DataLimitPercent, 75)
	c.DataLimit = cmp.Or(c.DataLimit, memory/100*int64(c.DataLimitPercent))
	c.ClientMemory = cmp.Or(c.ClientMemory, max(c.leastClientMemory(), min(defaultClientMemory, memory/8)))
	c.WatchMemory = cmp.Or(c.WatchMemory, min(defaultWatchMemory, memory/4))
	c.WatchReplay = cmp.Or(c.WatchReplay, min(8<<20, memory/64))
	c.InitLimit = cmp.Or(c.InitLimit, 10)
	c.SyncLimit = cmp.Or(c.SyncLimit, 5)
	c.SnapCount = cmp.Or(c.SnapCount, 100_000)
	c.SegmentBytes = min(cmp.Or(c.SegmentBytes, 64<<20), memlimit.FileSize())
	c.SyncWarning = cmp.Or(c.SyncWarning, time.Second)
	c.ContainerInterval = cmp.Or(c.ContainerInterval, time.Minute)
	c.ContainerMaxPerMinute = cmp.Or(c.ContainerMaxPerMinute, 10_000)
	c.ContainerNeverUsed = cmp.Or(c.ContainerNeverUsed, 5*time.Minute)
	c.HandshakeTimeout = cmp.Or(c.HandshakeTimeout, 10*time.Second)
	c.Version = cmp.Or(c.Version, version.Get().String())
	c.DigestAlgorithm = cmp.Or(c.DigestAlgorithm, identity.DefaultDigestAlgorithm)
	c.Logger = sloglog.Choose(c.Slog, c.Logger)
	if c.Now == nil {
		c.Now = time.Now
	}
	c.hooks.DataFS = cmp.Or[vfs.FS](c.hooks.DataFS, vfs.OS{})
	if c.Rand == nil {
		c.Rand = rand.Reader
	} else {
		c.Rand = &serialReader{r: c.Rand}
	}
	errs := slices.Concat(c.ensureThrottles(), c.ensureTLS(), c.checkPeers(), new(c.identities()).Check())
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf("server: "+format, args...)) }
	const ms = time.Millisecond
	errs = append(errs,
		inRange("Tick", c.Tick, ms, maxTick), inRange("HandshakeTimeout", c.HandshakeTimeout, ms, 0),
		inRange("ContainerInterval", c.ContainerInterval, ms, 0), inRange("SyncWarning", c.SyncWarning, ms, 0),
		inRange("AddressPatience", c.AddressPatience, 0, 0), inRange("BudgetWait", c.BudgetWait, 0, 0),
		inRange("InitLimit", c.InitLimit, 1, 0), inRange("SyncLimit", c.SyncLimit, 1, 0),
		inRange("OutstandingLimit", c.OutstandingLimit, 1, 0), inRange("SnapCount", c.SnapCount, 1, 0),
		inRange("ContainerMaxPerMinute", c.ContainerMaxPerMinute, 1, 0), inRange("WatchMemory", c.WatchMemory, 0, 0),
		inRange("DataLimitPercent", c.DataLimitPercent, 1, 100), inRange("MaxFeatureLevel", c.MaxFeatureLevel, 0, 0),
	)
	timeouts := errors.Join(
		inRange("MinSessionTimeout", c.MinSessionTimeout, ms, 0), inRange("MaxSessionTimeout", c.MaxSessionTimeout, ms, 0))
	buffer := inRange("MaxBuffer", c.MaxBuffer, 1024, maxMaxBuffer)
	errs = append(errs, timeouts, buffer)
	if timeouts == nil && c.MinSessionTimeout > c.MaxSessionTimeout {
		bad("MinSessionTimeout (default: 2 ticks) is %v, more than MaxSessionTimeout (default: 20 ticks), which is %v",
			c.MinSessionTimeout, c.MaxSessionTimeout)
	}
	if least := c.leastClientMemory(); buffer == nil && c.ClientMemory < least {
		bad("ClientMemory is %d, it must be 8 times MaxBuffer or more, which is %d", c.ClientMemory, least)
	}
	errs = append(errs, c.checkAddresses()...)
	if c.InProcess && c.Listener != nil {
		bad("InProcess is set, and so is Listener: choose one")
	}
	if c.Memory != nil && c.Dir != "" {
		bad("Dir is %q, and Memory is set: choose one", c.Dir)
	}
	return errors.Join(errs...)
}

// maxTick keeps the default of MaxSessionTimeout within the protocol's 32-bit milliseconds.
const maxTick = math.MaxInt32 / 20 * time.Millisecond

// inRange returns an error unless the value of a field is allowed. A most of 0 is no limit.
func inRange[T int | int32 | int64 | time.Duration](field string, value, least, most T) error {
	switch {
	case value < least && most == 0:
		return fmt.Errorf("server: %s is %v, it must be %v or more", field, value, least)
	case value < least || most != 0 && value > most:
		return fmt.Errorf("server: %s is %v, allowed are %v to %v", field, value, least, most)
	}
	return nil
}

// leastClientMemory is the smallest ClientMemory that is allowed: the longest reply, that to a
// multiRead, has four times MaxBuffer, and there must be room for others beside it.
func (c *Config) leastClientMemory() int64 { return 8 * int64(c.MaxBuffer) }

// Memory keeps the state of servers without a data directory from one server to the next. The zero
// value is empty. Only one server at a time may use it. Memory must not be copied.
type Memory consensus.Memory

func init() {
	confighook.Of = func(config any) *confighook.Hooks { return &config.(*Config).hooks }
}

// checkAddresses returns an error for each malformed host:port to listen on. Listening shows
// whether an address is free and belongs to this machine.
func (c *Config) checkAddresses() (errs []error) {
	for name, addresses := range map[string][]string{
		"Listen": {c.Listen}, "SecureListen": {c.SecureListen}, "PeerListen": strings.Split(c.PeerListen, serverlist.AddressSeparator),
	} {
		for _, address := range addresses {
			if err := checkAddress(address); err != nil {
				errs = append(errs, fmt.Errorf("server: %s is %q: %w", name, address, err))
			}
		}
	}
	return errs
}

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

// serialReader makes one call of r at a time, and fills the whole buffer.
type serialReader struct {
	mu sync.Mutex
	r  io.Reader
}

func (s *serialReader) Read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return io.ReadFull(s.r, b)
}
