package config

import (
	"net"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/tlsconf"
	"github.com/gozkd/gozkd/internal/serverlist"
)

// Config is the configuration of a server: every supported key, resolved, with defaults. Durations
// are whole milliseconds. Load returns only valid configurations.
type Config struct {
	// Memory keeps all data in memory. DataDir and DataLogDir are empty then.
	Memory bool
	// DataDir holds the checkpoint, DataLogDir the log. They are equal unless dataLogDir is set.
	DataDir, DataLogDir string

	// Members are the initial servers of the ensemble, including MyID; later reconfigurations do
	// not change the file. Empty for a standalone server.
	Members serverlist.Set
	// MyID is the id of this server, see package memberid; 0 if no number is configured, which is
	// possible only for a standalone server.
	MyID uint64
	// StandaloneEnabled makes a single server line configure a standalone server. Otherwise it
	// configures an ensemble with a single member.
	StandaloneEnabled bool
	// MultiAddress lets server lines have several addresses. ReachabilityTimeout is for how long
	// each is tried.
	MultiAddress        bool
	ReachabilityTimeout time.Duration
	// ObserverMasterPort is not 0 if observers follow followers. Nothing listens on the port.
	ObserverMasterPort int
	// LeaderServes lets the leader serve clients although there are other members.
	LeaderServes bool
	// InitLimit is how long a new ensemble waits for its last members, SyncLimit how long a server
	// may lose contact with the leader, in ticks.
	InitLimit, SyncLimit int
	// ListenOnAllIPs makes this server listen for other servers on all addresses: see
	// PeerListenAddress.
	ListenOnAllIPs bool
	// LinearizableReads makes every read confirm with the leader that the server is up to date.
	LinearizableReads bool

	// ClientPort is the port for clients; 0: any free port.
	ClientPort int
	// ClientPortAddress is the host or IP address to listen on, without brackets. Empty means all
	// addresses.
	ClientPortAddress string
	// ClientPortFixed: a flag sets one of the two, over the own server line, so that a reconfig
	// does not move the port.
	ClientPortFixed bool
	// ClientPortListenBacklog is how many connections may wait to be accepted; -1 or 0 means the
	// system's limit.
	ClientPortListenBacklog int

	// SecureClientPort is the port for clients with TLS; 0 means none. SecureClientPortAddress is
	// like ClientPortAddress. SecureOnly: there is no other port for clients.
	SecureClientPort        int
	SecureClientPortAddress string
	SecureOnly              bool
	// PortUnification accepts TLS at ClientPort, too.
	PortUnification bool
	// SSLQuorum and PeerPortUnification say which connections between servers use TLS: see
	// ServesPeerTLS. PeerTLS is what other servers see, and what is demanded of them.
	SSLQuorum, PeerPortUnification bool
	PeerTLS                        tlsconf.Options
	// PeerTLSEnsemble is the name of the ensemble in the URIs of certificates.
	PeerTLSEnsemble string
	// PeerTLSDetection bounds the wait for the first byte of a caller at the peer port.
	PeerTLSDetection time.Duration
	// ClientTLS is what clients with TLS see, and what is demanded of them.
	ClientTLS tlsconf.Options
	// HandshakeLimit bounds TLS handshakes under way; 0 or less means no bound.
	HandshakeLimit int
	// X509ID is the part of a certificate that identifies a client, X509SuperUser the identity of
	// the superuser or empty.
	X509ID, X509SuperUser string

	// TickTime is the unit of session expiry.
	TickTime time.Duration
	// MinSessionTimeout and MaxSessionTimeout bound the session timeout that a client may request.
	MinSessionTimeout, MaxSessionTimeout time.Duration

	// MaxClientCnxns bounds connections per client address, MaxCnxns all connections; 0 means no
	// bound.
	MaxClientCnxns, MaxCnxns int
	// HandshakeTimeout bounds how long a connection may be open without a session.
	HandshakeTimeout time.Duration
	// ClientTCPKeepAlive enables TCP keep-alive on client connections.
	ClientTCPKeepAlive bool
	// JuteMaxBuffer bounds a frame from a client, in bytes.
	JuteMaxBuffer int
	// GlobalOutstandingLimit bounds the requests in flight on the server.
	GlobalOutstandingLimit int
	// ClientMemory bounds, in bytes, what waits for all clients together; 0 means the server's
	// default.
	ClientMemory int64
	// WatchMemory bounds, in bytes, the watches of all clients together; 0 means the server's
	// default.
	WatchMemory int64
	// Throttle bounds connect requests, writes and large requests.
	Throttle Throttle
	// FourLetterWords is the configured whitelist, "*" for all. See Words.
	FourLetterWords []string
	// ReadOnlyMode lets a member without a quorum serve reads to clients that accept that, and
	// enables the word isro.
	ReadOnlyMode bool
	// LocalSessions opens sessions that only this server knows. LocalSessionUpgrades makes one of
	// them a session like others when it creates an ephemeral znode.
	LocalSessions, LocalSessionUpgrades bool
	// ReconfigEnabled lets clients change the members. On a standalone server it selects the error.
	ReconfigEnabled bool

	// SkipACL disables all ACL checks.
	SkipACL bool
	// EnforceQuota makes hard quotas refuse writes.
	EnforceQuota bool
	// RefuseUnreadable refuses writes after which a reply would be larger than JuteMaxBuffer.
	RefuseUnreadable bool
	// DigestAlgorithm is the hash of the digest scheme.
	DigestAlgorithm string
	// SuperDigest is "user:base64(hash(user:password))" of the superuser. If it is empty, there is
	// no superuser.
	SuperDigest string
	// DigestAuthEnabled enables the digest scheme.
	DigestAuthEnabled bool

	// Auth is how clients prove who they are, besides the digest scheme.
	Auth Auth
	// Audit configures the audit log.
	Audit Audit
	// Archive configures the archive of the log.
	Archive Archive
	// Kerberos configures names of principals.
	Kerberos Kerberos

	// ContainerCheckInterval is the interval between searches for container and TTL znodes to
	// delete.
	ContainerCheckInterval time.Duration
	// ContainerMaxPerMinute bounds these deletions per minute.
	ContainerMaxPerMinute int
	// ContainerMaxNeverUsed is how long to keep a container that never had a child; 0 means
	// forever.
	ContainerMaxNeverUsed time.Duration

	// SnapCount is the number of transactions between checkpoints:
	// consensus.Config.CheckpointRequests.
	SnapCount int
	// PreAllocBytes is the size of a log segment in bytes.
	PreAllocBytes int64
	// ForceSync syncs the disk before a write is acknowledged. Without it a power failure can lose
	// acknowledged writes.
	ForceSync bool
	// FsyncWarningThreshold is the duration above which a sync of the log is logged.
	FsyncWarningThreshold time.Duration
	// Found lets a server without data take part in founding an ensemble even without the file
	// initialize.
	Found bool
	// AutoCreate creates missing data directories.
	AutoCreate bool

	// AdminEnabled serves the admin commands over HTTP at AdminAddress and AdminPort (0 means any
	// free port, -1 none), below the path AdminCommandURL.
	AdminEnabled     bool
	AdminAddress     string
	AdminPort        int
	AdminCommandURL  string
	AdminIdleTimeout time.Duration
	// AdminSnapshot enables the command snapshot. AdminInterval is the minimum interval between two
	// snapshots; 0 means no minimum.
	AdminSnapshot bool
	AdminInterval time.Duration
	// AdminTokenFile is a file with a token for admin commands. AdminOpen admits their callers as
	// ZooKeeper does, and AdminForwardedFor believes their header X-Forwarded-For then.
	AdminTokenFile               string
	AdminOpen, AdminForwardedFor bool
	// AdminUnified accepts HTTPS beside HTTP, AdminForceHTTPS only HTTPS: see AdminTLS.
	// AdminNeedCert demands a certificate from callers by HTTPS. AdminX509 lists identities: see
	// AdminIdentities.
	AdminUnified, AdminForceHTTPS, AdminNeedCert bool
	AdminX509                                    string
	// Web is what callers on this machine may do by REST and in the explorer: read, write or off.
	// WebRoles, WebHosts and WebProxyList are lists as in zoo.cfg.
	Web, WebRoles, WebProxyHeader string
	WebHosts, WebProxyList        []string
	// Pprof serves profiles on the admin server.
	Pprof bool

	// MetricsProvider is a class name of ZooKeeper: see Prometheus. MetricsHost and MetricsPort are
	// the listen address, port 0 means any free port. MetricsRuntime adds metrics of the runtime
	// and the process.
	MetricsProvider string
	MetricsHost     string
	MetricsPort     int
	MetricsRuntime  bool

	// MetricsHTTPSPort is like MetricsPort, -1 means none: see MetricsTLSOptions.
	MetricsHTTPSPort                 int
	MetricsTLS                       tlsconf.Options
	MetricsNeedCert, MetricsWantCert bool

	// PeerSecretFile holds the secret of the ensemble, and PeerSecret is the secret: empty if there
	// is no file. PeerSecretMode is RequireSecret or PreferSecret.
	PeerSecretFile string
	PeerSecret     []byte
	PeerSecretMode string
	// MaxFeatureLevel is the highest feature level that this server agrees to activate; 0 means the
	// highest that it supports.
	MaxFeatureLevel int
	// SlowRequest is the duration above which a request is logged; 0 disables that.
	SlowRequest time.Duration
	// LogLevel is trace, debug, info, warn, error or off.
	LogLevel string
}

// ListenAddress returns the host:port for clients.
func (c Config) ListenAddress() string {
	return net.JoinHostPort(c.ClientPortAddress, strconv.Itoa(c.ClientPort))
}

// AdminListenAddress returns the host:port for admin commands.
func (c Config) AdminListenAddress() string {
	return net.JoinHostPort(anyHost(c.AdminAddress), strconv.Itoa(c.AdminPort))
}

// MetricsListenAddress returns the host:port for Prometheus.
func (c Config) MetricsListenAddress() string {
	return net.JoinHostPort(anyHost(c.MetricsHost), strconv.Itoa(c.MetricsPort))
}

// anyHost translates 0.0.0.0, ZooKeeper's notation for all addresses, to Go's notation, which
// includes IPv6.
func anyHost(host string) string {
	if host == "0.0.0.0" {
		return ""
	}
	return host
}

// PeerListenAddress returns the host:port for other servers, several separated by |, or "" for a
// standalone server.
func (c Config) PeerListenAddress() string {
	m, ok := c.Members.Get(c.MyID)
	if !ok {
		return ""
	}
	addresses := strings.Split(m.PeerAddress(), serverlist.AddressSeparator)
	if c.ListenOnAllIPs {
		for i, address := range addresses {
			_, port, _ := net.SplitHostPort(address)
			addresses[i] = net.JoinHostPort("", port)
		}
		slices.Sort(addresses)
		addresses = slices.Compact(addresses)
	}
	return strings.Join(addresses, serverlist.AddressSeparator)
}

// Words returns the four-letter words to answer: the configured words, srvr, and isro in read-only
// mode. "*" stands for all. The caller owns the slice. Source: spec section 12.1; ZooKeeper
// FourLetterCommands.isEnabled.
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

// String returns c as a zoo.cfg with every supported key, in the order of the documentation. Memory
// is omitted, because it is a flag, and so are passwords.
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
		for i, v := range k.numbered(&c) {
			line(strings.Replace(k.name, "*", strconv.Itoa(i+1), 1), v)
		}
		switch {
		case k.field == nil, k.name == "clientPort" && c.SecureOnly:
			continue
		}
		switch v := k.get(&c); {
		case v == "":
		case k.kind.hidden:
			line("# "+k.name, "(hidden)")
		default:
			line(k.name, v)
		}
	}
	return b.String()
}

// escapeValue escapes a value for a properties file.
func escapeValue(v string) string {
	return strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`, "\t", `\t`, "\f", `\f`).Replace(v)
}

// Changes compares c with a later configuration. It returns the keys whose values differ, in the
// order of the documentation: those that apply at runtime and those that need a restart.
func (c Config) Changes(next Config) (reload, restart []string) {
	for _, k := range keys {
		switch {
		case k.name == serverLines:
			if !reflect.DeepEqual(c.Members, next.Members) {
				restart = append(restart, k.name)
			}
		case !slices.Equal(k.numbered(&c), k.numbered(&next)):
			reload = append(reload, k.name)
		case k.field == nil || k.get(&c) == k.get(&next):
		case k.reload:
			reload = append(reload, k.name)
		default:
			restart = append(restart, k.name)
		}
	}
	return reload, restart
}
