package client

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/gozkd/gozkd/internal/clientauth"
	"github.com/gozkd/gozkd/internal/neterr"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/sasl"
)

const (
	defaultSessionTimeout = 30 * time.Second
	defaultConnectTimeout = neterr.FirstAnswer
	defaultMaxBuffer      = 64 << 20
)

// Config configures a Client. Only Servers has no default.
type Config struct {
	// Servers are the addresses, host:port, of at least one server. The Client tries them in random
	// order. See ParseServers.
	Servers []string
	// Chroot is "" or a path such as "/app" that is prepended to every path of the Client.
	Chroot string
	// SessionTimeout is the requested timeout; the server may negotiate another, see Session.
	// Default: 30 s.
	SessionTimeout time.Duration
	// ConnectTimeout bounds Close, and the connection to a server together with the handshake, for
	// which a session to resume leaves no more than a third of its timeout. Default: 5 s.
	ConnectTimeout time.Duration
	// Dial opens a connection to a server of Servers. Default: TCP. DialTLS has a Dial for TLS.
	Dial Dial
	// SASL authenticates each connection before any other request, unless SASL is nil. If a server
	// refuses the credentials, the Client ends in state AuthFailed. See ErrSASL.
	SASL sasl.Client
	// ReadOnly accepts a server that has lost its quorum and only answers reads. While connected to
	// such a server, the Client looks for a server with a quorum.
	ReadOnly bool
	// LastZxid is what the Client claims to have seen when it first connects. A server that has not
	// seen that zxid refuses the Client, so no read shows an earlier state.
	LastZxid proto.Zxid
	// MaxBuffer is the largest reply in bytes. The error of a request with a larger reply is a
	// TooLargeError. Default: 64 MiB.
	MaxBuffer int
	// MaxRequest is the largest request in bytes. A larger one fails with a TooLargeError and is
	// not sent: a server would close the connection. Default: no bound.
	MaxRequest int
	// Auths are sent on each connection, like those of AddAuth.
	Auths []Auth
	// OnEvent receives state changes and watch events in order, on a single goroutine. If it lets
	// thousands of events wait, the connection is no longer read, so OnEvent must not wait for a
	// method of the Client. Default: events are dropped.
	OnEvent func(Event)
	// OnConnect is called with the session when a server has granted or resumed it, before any
	// request is sent on that connection. An error makes the Client leave that server. OnConnect
	// must not wait for a method of the Client.
	OnConnect func(Session) error
	// Resume makes Connect resume that session, unless Resume is nil. If the session has ended,
	// Connect fails with proto.ErrSessionExpired.
	Resume *Session
	// Logger gets the client's log lines, and may be a *slog.Logger. If it has a method Warn like
	// that of *slog.Logger, a lost connection is a warning. Default: none.
	Logger Logger
	// Hooks observe the requests and connections.
	Hooks Hooks
}

// Hooks observe a Client, for metrics and traces. Each may be nil. They are called from any
// goroutine, must return soon, and must not use the Client.
type Hooks struct {
	// Request is called when a method of the Client makes a request. op and path are those of the
	// Error with which the request may fail. The result, unless nil, is called when the request has
	// ended, with the number of times that it was repeated, always 0 in this package, and its
	// error.
	Request func(ctx context.Context, op, path string) (ended func(repeats int, err error))
	// Reconnect is called when a server has accepted a connection that replaces a lost one.
	Reconnect func(server string)
}

// Dial opens a connection to the server at address, host:port.
type Dial func(ctx context.Context, address string) (net.Conn, error)

func dialTCP(ctx context.Context, address string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "tcp", address)
}

// DialTLS returns a Dial that makes each connection of plain, or of TCP if plain is nil, a TLS
// connection. If cfg has no ServerName, the certificate of a server must be for the host of its
// address. A nil cfg is empty. Programs that do not call DialTLS do not link crypto/tls.
func DialTLS(cfg *tls.Config, plain Dial) Dial {
	if plain == nil {
		plain = dialTCP
	}
	cfg = cmp.Or(cfg, new(tls.Config))
	return func(ctx context.Context, address string) (net.Conn, error) {
		conn, err := plain(ctx, address)
		if err != nil {
			return nil, err
		}
		return clientauth.TLS(ctx, conn, cfg, address)
	}
}

// Logger is the part of a *slog.Logger, or of an hclog.Logger, that a Client needs.
type Logger interface {
	Debug(message string, keysAndValues ...any)
}

// Auth is a credential. For the scheme "digest" it is user:password.
type Auth struct {
	Scheme     string
	Credential []byte
}

// withDefaults returns cfg with defaults filled in, or all errors in cfg.
func (cfg Config) withDefaults() (Config, error) {
	var errs []error
	if len(cfg.Servers) == 0 {
		errs = append(errs, errors.New("no servers"))
	}
	if cfg.Chroot == "/" {
		cfg.Chroot = ""
	}
	if cfg.Chroot != "" {
		if err := proto.ValidatePath(cfg.Chroot); err != nil {
			errs = append(errs, fmt.Errorf("chroot: %w", err))
		}
	}
	for _, n := range []struct {
		name     string
		negative bool
	}{
		{"SessionTimeout", cfg.SessionTimeout < 0}, {"ConnectTimeout", cfg.ConnectTimeout < 0}, {"MaxBuffer", cfg.MaxBuffer < 0},
	} {
		if n.negative {
			errs = append(errs, fmt.Errorf("%s is negative", n.name))
		}
	}
	cfg.SessionTimeout = cmp.Or(cfg.SessionTimeout, defaultSessionTimeout)
	cfg.ConnectTimeout = cmp.Or(cfg.ConnectTimeout, defaultConnectTimeout)
	cfg.MaxBuffer = cmp.Or(cfg.MaxBuffer, defaultMaxBuffer)
	if cfg.Dial == nil {
		cfg.Dial = dialTCP
	}
	if cfg.OnEvent == nil {
		cfg.OnEvent = func(Event) {}
	}
	if cfg.OnConnect == nil {
		cfg.OnConnect = func(Session) error { return nil }
	}
	cfg.Logger = cmp.Or[Logger](cfg.Logger, slog.New(slog.DiscardHandler))
	if err := errors.Join(errs...); err != nil {
		return cfg, fmt.Errorf("client: %w", err)
	}
	return cfg, nil
}

// configPath is the znode in which servers publish the membership.
const configPath = "/zookeeper/config"

// Config returns the members of the ensemble, from /zookeeper/config whatever the chroot, and the
// Stat of that znode, whose Mzxid is the version of the configuration. Watch events have the path
// /zookeeper/config.
func (c *Client) Config(ctx context.Context, watch bool) ([]byte, proto.Stat, error) {
	return c.get(ctx, configPath, configPath, watch)
}

// Reconfig changes the members of the ensemble: either by joining (server lines separated by
// commas) and leaving (numbers), or by a list of all members. An empty string is absent. version is
// the expected version of the configuration, or -1. Reconfig returns the new configuration and the
// Stat of its znode.
func (c *Client) Reconfig(ctx context.Context, joining, leaving, members string, version int64) ([]byte, proto.Stat, error) {
	req := proto.ReconfigRequest{Joining: nonEmpty(joining), Leaving: nonEmpty(leaving), NewMembers: nonEmpty(members), ConfigID: version}
	var resp proto.DataResponse
	if err := c.do(ctx, request{op: proto.OpReconfig, body: req.Append}, resp.Decode); err != nil {
		return nil, proto.Stat{}, err
	}
	return resp.Data, resp.Stat, nil
}

func nonEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
