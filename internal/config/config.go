package config

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Config is what one standalone server runs with: every key that works here, resolved, with defaults filled in.
// Durations are whole milliseconds. Load returns it valid.
type Config struct {
	// Memory keeps all data in memory; then DataDir and DataLogDir are empty.
	Memory bool
	// DataDir holds the checkpoint, DataLogDir the log. They are the same unless dataLogDir was set.
	DataDir, DataLogDir string

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
	// ReadOnlyMode is readonlymode.enabled. A standalone server never is read-only; it then answers isro.
	ReadOnlyMode bool
	// ReconfigEnabled decides with which error reconfig is refused.
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

	// SnapCount is the number of transactions between two checkpoints.
	SnapCount int
	// PreAllocBytes is the size of a segment of the log, in bytes.
	PreAllocBytes int64
	// ForceSync waits for the disk before a write is acknowledged. Without it a power loss can lose acknowledged writes.
	ForceSync bool
	// FsyncWarningThreshold is how long a sync of the log may take without a warning.
	FsyncWarningThreshold time.Duration
}

// ListenAddress returns host:port to listen on for clients.
func (c Config) ListenAddress() string {
	return net.JoinHostPort(c.ClientPortAddress, strconv.Itoa(c.ClientPort))
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
	for _, k := range keys {
		if k.bind.get == nil {
			continue
		}
		if v := k.bind.get(&c); v != "" {
			b.WriteString(k.name)
			b.WriteByte('=')
			b.WriteString(escapeValue(v))
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// escapeValue writes a value so that the reader of properties returns it unchanged.
func escapeValue(v string) string {
	return strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`, "\t", `\t`, "\f", `\f`).Replace(v)
}
