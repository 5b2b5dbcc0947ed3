package config

import (
	"crypto/x509"
	"net"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/tlsconf"
	"github.com/gozkd/gozkd/internal/serverlist"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/server/identity"
)

// Config is the configuration of a server: every supported key, resolved, with defaults. Durations
// are whole milliseconds. Load returns only valid configurations. A field without a comment means
// what the note of its key says: see the tables in keys*.go.
type Config struct {
	// Memory keeps all data in memory. Server.Dir and Server.LogDir are empty then.
	Memory bool
	// Server has the fields that keys set directly. ForServer returns it with all other fields.
	Server   server.Config
	LogLevel string

	// Members are the initial servers of the ensemble, including MyID; later reconfigurations do
	// not change the file. Empty for a standalone server.
	Members serverlist.Set
	// MyID is the id of this server, see package memberid; 0 if no number is configured, which is
	// possible only for a standalone server.
	MyID uint64
	// ObserverMasterPort is not 0 if observers follow followers. Nothing listens on the port.
	ObserverMasterPort int
	// ListenOnAllIPs: listen for other servers on all addresses, see PeerListenAddress.
	ListenOnAllIPs bool
	// PeerSecretFile holds Server.PeerSecret.
	PeerSecretFile string
	// SSLQuorum and PeerPortUnification say which connections between servers use TLS: see
	// ServesPeerTLS. PeerTLS is what other servers see, and what is demanded of them.
	SSLQuorum, PeerPortUnification bool
	PeerTLS                        tlsconf.Options
	// Found lets a server without data found an ensemble without the file initialize.
	Found      bool
	AutoCreate bool

	ClientPort int
	// ClientPortAddress is a host or IP address without brackets; empty: all addresses.
	ClientPortAddress string
	// SecureClientPortAddress is likewise. SecureOnly: there is no other port for clients.
	SecureClientPort        int
	SecureClientPortAddress string
	SecureOnly              bool
	ClientTLS               tlsconf.Options
	X509ID                  string
	Auth                    Auth
	Kerberos                Kerberos

	Audit   Audit
	Archive Archive

	// Standby is set by the command standby, and by no key.
	Standby Standby

	AdminEnabled     bool
	AdminOmitted     string // the setting without which there would be an admin server by default
	AdminAddress     string
	AdminPort        int
	AdminCommandURL  string
	AdminIdleTimeout time.Duration
	AdminSnapshot    bool
	// AdminInterval is the least time between two snapshots; negative: there is no least.
	AdminInterval                time.Duration
	AdminTokenFile               string
	AdminOpen, AdminForwardedFor bool
	// See AdminTLS and AdminIdentities.
	AdminUnified, AdminForceHTTPS, AdminNeedCert bool
	AdminX509                                    string
	Web, WebRoles, WebProxyHeader                string
	WebHosts                                     []string
	WebRate                                      int // requests of a caller per second
	WebProxies                                   []netip.Prefix
	ScaleURL                                     string
	Pprof                                        bool

	// MetricsProvider is a class name of ZooKeeper: see Prometheus.
	MetricsProvider                  string
	MetricsHost                      string
	MetricsPort                      int
	MetricsRuntime                   bool
	MetricsHTTPSPort                 int
	MetricsTLS                       tlsconf.Options
	MetricsNeedCert, MetricsWantCert bool
}

// ForServer returns Server with the fields that follow from several keys. The caller sets what
// a configuration cannot hold: SASL mechanisms, TLS, the logger and the audit log.
func (c Config) ForServer() server.Config {
	s := c.Server
	s.MemberID, s.PeerListen, s.RelayedObservers = uint8(c.MyID), c.PeerListenAddress(), c.ObserverMasterPort > 0
	for _, m := range c.Members {
		s.Members = append(s.Members, m.String())
	}
	s.Listen, s.SecureListen, s.InProcess = c.ListenAddress(), c.SecureListenAddress(), c.SecureOnly
	s.Words = c.Words()
	a := &s.Auth
	a.X509.ID, a.X509.TextIDs = c.CertificateID(), c.X509ID != "subject"
	a.Ensemble, a.Required, a.ACLSchemes = c.EnsembleScheme(), c.RequiredSchemes(), c.ACLSchemes()
	t := &s.ConnectionThrottle
	t.GlobalWeight, t.RenewWeight = max(t.GlobalWeight, t.LocalWeight), max(t.RenewWeight, t.LocalWeight)
	if c.Archive.URL == "" {
		s.ArchiveBytes = 0
	}
	s.Settings = []server.Setting{{Key: "clientPortListenBacklog", Value: strconv.Itoa(s.ListenBacklog)}}
	return s
}

// CertificateID returns the function that reads an identity from a certificate, as configured.
func (c Config) CertificateID() func(*x509.Certificate) (string, error) {
	id, err := identity.CertificateIDOf(c.X509ID)
	if err != nil { // cannot be: the key's kind has the parts
		return func(*x509.Certificate) (string, error) { return "", err }
	}
	return id
}

// ListenAddress returns the host:port for clients.
func (c Config) ListenAddress() string {
	return net.JoinHostPort(c.ClientPortAddress, strconv.Itoa(c.ClientPort))
}

// HostPort returns the host:port to listen on: 0.0.0.0 becomes Go's all addresses, also IPv6.
func HostPort(host string, port int) string {
	if host == "0.0.0.0" {
		host = ""
	}
	return net.JoinHostPort(host, strconv.Itoa(port))
}

// PeerListenAddress returns the host:port for other servers, several with | between, or "".
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
// mode; "*" stands for all. The caller owns them. Source: ZooKeeper FourLetterCommands.isEnabled.
func (c Config) Words() []string {
	words := slices.Clone(c.Server.Words)
	if slices.Contains(words, "*") {
		return []string{"*"}
	}
	words = append(words, "srvr")
	if c.Server.ReadOnlyMode {
		words = append(words, "isro")
	}
	slices.Sort(words)
	return slices.Compact(words)
}

// String returns c as a zoo.cfg with every supported key, in the order of the documentation. Memory
// is omitted, because it is a flag, and so are passwords.
func (c Config) String() string {
	var b strings.Builder
	escape := strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`, "\t", `\t`, "\f", `\f`)
	line := func(key, value string) { b.WriteString(key + "=" + escape.Replace(value) + "\n") }
	for _, k := range table(&c) {
		if k.name == serverLines {
			for _, m := range c.Members {
				line(m.Key(), m.Value())
			}
		}
		for i, v := range k.numbered(&c) {
			line(strings.Replace(k.name, "*", strconv.Itoa(i+1), 1), v)
		}
		if k.field == nil || k.name == "clientPort" && c.SecureOnly {
			continue
		}
		switch v := k.text().get(); {
		case v == "":
		case k.secret:
			line("# "+k.name, "(hidden)")
		default:
			line(k.name, v)
		}
	}
	return b.String()
}

// Changes compares c with a later configuration. It returns the keys whose values differ, in the
// order of the documentation: those that apply at runtime and those that need a restart.
func (c Config) Changes(next Config) (reload, restart []string) {
	later := table(&next)
	for i, k := range table(&c) {
		switch {
		case k.name == serverLines:
			if !reflect.DeepEqual(c.Members, next.Members) {
				restart = append(restart, k.name)
			}
		case (k.name == jaasFile || k.name == saslUserFile) && k.text().get() != "" &&
			!reflect.DeepEqual(c.Auth.Users, next.Auth.Users):
			reload = append(reload, k.name) // perhaps another password in the same file
		case !slices.Equal(k.numbered(&c), k.numbered(&next)):
			reload = append(reload, k.name)
		case k.field == nil || k.text().get() == later[i].text().get():
		case k.reload:
			reload = append(reload, k.name)
		default:
			restart = append(restart, k.name)
		}
	}
	return reload, restart
}
