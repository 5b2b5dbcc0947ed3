package config

import (
	"net"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/serverlist"
)

// Config is what one server runs with: every key that works here, resolved, with defaults filled in.
// Durations are whole milliseconds. Load returns it valid.
type Config struct {
	// Memory keeps all data in memory; then DataDir and DataLogDir are empty.
	Memory bool
	// DataDir holds the checkpoint, DataLogDir the log. They are the same unless dataLogDir was set.
	DataDir, DataLogDir string

	// Members are the servers of the ensemble that this one belongs to; empty for a standalone server. MyID is one
	// of them then. They are where an ensemble begins: reconfig changes the members, and not this file.
	Members serverlist.Set
	// MyID is the number of this server. A standalone server may have one too; 0 means that none was named.
	MyID uint64
	// StandaloneEnabled is whether one server line means a standalone server, and not an ensemble of one.
	StandaloneEnabled bool
	// InitLimit and SyncLimit are in ticks, as ZooKeeper has them: how long a server may take to catch up with the
	// leader, and how long it may be out of touch with it.
	InitLimit, SyncLimit int
	// ListenOnAllIPs makes this server listen for the others on all addresses, and not on its own line's: see
	// PeerListenAddress.
	ListenOnAllIPs bool
	// LinearizableReads makes every read ask the leader whether it is up to date.
	LinearizableReads bool

	// ClientPort is the port that clients connect to; 0 means any free one.
	ClientPort int
	// ClientPortAddress is the host or IP address to listen on, without brackets; empty means all addresses.
	ClientPortAddress string
	// ClientPortListenBacklog is reported by the word conf and has no other effect.
	ClientPortListenBacklog int

	// TickTime is the unit of session expiry.
	TickTime time.Duration
	// MinSessionTimeout and MaxSessionTimeout bound what a client may ask for.
	MinSessionTimeout, MaxSessionTimeout time.Duration

	// MaxClientCnxns bounds connections per client address, MaxCnxns all connections; 0 means no bound.
	MaxClientCnxns, MaxCnxns int
	// HandshakeTimeout is how long a connection may be open without a session.
	HandshakeTimeout time.Duration
	// ClientTCPKeepAlive turns on TCP keep-alive on client connections.
	ClientTCPKeepAlive bool
	// JuteMaxBuffer is the largest frame accepted from a client, in bytes.
	JuteMaxBuffer int
	// GlobalOutstandingLimit bounds the requests in flight on the whole server.
	GlobalOutstandingLimit int
	// FourLetterWords are the words as configured, "*" for all; Words returns the ones to answer.
	FourLetterWords []string
	// ReadOnlyMode is readonlymode.enabled. No server ever is read-only; it then answers isro.
	ReadOnlyMode bool
	// ReconfigEnabled lets clients change the members. On a standalone server it decides with which error that is
	// refused.
	ReconfigEnabled bool

	// SkipACL turns off all ACL checks.
	SkipACL bool
	// EnforceQuota makes hard quotas refuse writes.
	EnforceQuota bool
	// SuperDigest is "user:base64(sha1(user:password))" of the user who passes every ACL; empty means nobody.
	SuperDigest string
	// DigestAuthEnabled allows the digest scheme.
	DigestAuthEnabled bool

	// ContainerCheckInterval is the time between two searches for containers and TTL nodes to delete.
	ContainerCheckInterval time.Duration
	// ContainerMaxPerMinute bounds how many of them are deleted per minute.
	ContainerMaxPerMinute int
	// ContainerMaxNeverUsed is how long a container that never had a child is kept; 0 means for ever.
	ContainerMaxNeverUsed time.Duration

	// SnapCount is the number of transactions after which a checkpoint is written; consensus.Config.CheckpointRequests.
	SnapCount int
	// PreAllocBytes is the size of a segment of the log, in bytes.
	PreAllocBytes int64
	// ForceSync waits for the disk before a write is acknowledged. Without it a power loss can lose acknowledged writes.
	ForceSync bool
	// FsyncWarningThreshold is how long a sync of the log may take without a warning.
	FsyncWarningThreshold time.Duration
	// AutoCreate is whether data directories that are missing are created.
	AutoCreate bool

	// AdminEnabled is whether there is an HTTP server of admin commands, at AdminAddress and AdminPort, 0 for any free port, with
	// the commands below AdminCommandURL.
	AdminEnabled     bool
	AdminAddress     string
	AdminPort        int
	AdminCommandURL  string
	AdminIdleTimeout time.Duration
	// AdminSnapshot allows the command snapshot, AdminInterval is the least time between two; 0: none.
	AdminSnapshot bool
	AdminInterval time.Duration
	// Pprof serves profiles on the admin server.
	Pprof bool

	// MetricsProvider is one of ZooKeeper's classes: see Prometheus. MetricsHost and MetricsPort are where it listens, port 0 for any free
	// one; MetricsRuntime adds metrics of the runtime and the process.
	MetricsProvider string
	MetricsHost     string
	MetricsPort     int
	MetricsRuntime  bool

	// SlowRequest is how long a request may take without being logged; 0: any time.
	SlowRequest time.Duration
	// LogLevel is trace, debug, info, warn, error or off.
	LogLevel string
}

// ListenAddress returns host:port to listen on for clients.
func (c Config) ListenAddress() string {
	return net.JoinHostPort(c.ClientPortAddress, strconv.Itoa(c.ClientPort))
}

// AdminListenAddress returns host:port to listen on for admin commands.
func (c Config) AdminListenAddress() string {
	return net.JoinHostPort(anyHost(c.AdminAddress), strconv.Itoa(c.AdminPort))
}

// MetricsListenAddress returns host:port to listen on for Prometheus.
func (c Config) MetricsListenAddress() string {
	return net.JoinHostPort(anyHost(c.MetricsHost), strconv.Itoa(c.MetricsPort))
}

// anyHost turns ZooKeeper's word for all addresses into Go's, which means IPv6 too.
func anyHost(host string) string {
	if host == "0.0.0.0" {
		return ""
	}
	return host
}

// PeerListenAddress returns host:port to listen on for the other servers, or "" for a standalone server.
func (c Config) PeerListenAddress() string {
	m, ok := c.Members.Get(c.MyID)
	if !ok {
		return ""
	}
	if c.ListenOnAllIPs {
		m.Host = ""
	}
	return m.PeerAddress()
}

// Words returns the four-letter words to answer: those configured, srvr always, and isro in read-only mode. The
// word "*" stands for all. The caller owns the slice.
// Source: spec section 12.1; ZooKeeper FourLetterCommands.isEnabled.
func (c Config) Words() []string {
	words := slices.Clone(c.FourLetterWords)
	if slices.Contains(words, "*") {
		return []string{"*"}
	}
	words = append(words, "srvr")
	if c.ReadOnlyMode {
		words = append(words, "isro")
	}
	slices.Sort(words)
	return slices.Compact(words)
}

// String returns c as a zoo.cfg that reads back as c: every key that works, in the order of the documentation.
// Memory is a flag and no key, so it is not part of it.
func (c Config) String() string {
	var b strings.Builder
	line := func(key, value string) {
		b.WriteString(key)
		b.WriteByte('=')
		b.WriteString(escapeValue(value))
		b.WriteByte('\n')
	}
	for _, k := range keys {
		if k.name == serverLines {
			for _, m := range c.Members {
				line(m.Key(), m.Value())
			}
		}
		if k.bind.get == nil {
			continue
		}
		if v := k.bind.get(&c); v != "" {
			line(k.name, v)
		}
	}
	return b.String()
}

// escapeValue writes a value so that the reader of properties returns it unchanged.
func escapeValue(v string) string {
	return strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`, "\t", `\t`, "\f", `\f`).Replace(v)
}

// Changes compares c with what is to come after it, and returns the keys whose values differ, in the order of the documentation:
// those that a server takes while it runs, and those that need a restart.
func (c Config) Changes(next Config) (reload, restart []string) {
	for _, k := range keys {
		switch {
		case k.name == serverLines:
			if !reflect.DeepEqual(c.Members, next.Members) {
				restart = append(restart, k.name)
			}
		case k.bind.get == nil || k.bind.get(&c) == k.bind.get(&next):
		case k.reload:
			reload = append(reload, k.name)
		default:
			restart = append(restart, k.name)
		}
	}
	return reload, restart
}
