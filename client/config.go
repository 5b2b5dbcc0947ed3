package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/proto"
)

// DefaultPort is the port of a server that is named without one.
const DefaultPort = "2181"

const (
	defaultSessionTimeout = 30 * time.Second
	defaultConnectTimeout = 5 * time.Second
	defaultMaxBuffer      = 64 << 20
)

// Config says which servers a Client talks to and how. Only Servers has no default.
type Config struct {
	// Servers are addresses, host:port, at least one. They are tried in random order. See ParseServers.
	Servers []string
	// Chroot is "" or a path like "/app": every path of the Client is below it.
	Chroot string
	// SessionTimeout is asked of the server, which may negotiate another: see Session. Default: 30 s.
	SessionTimeout time.Duration
	// ConnectTimeout is how long one server has to accept a connection and give a session, and how long Close waits.
	// Default: 5 s.
	ConnectTimeout time.Duration
	// Dial opens a connection to an address out of Servers. Default: TCP.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// ReadOnly accepts a server that is cut off from its quorum and only answers reads. While connected to one, the Client
	// looks for a better server.
	ReadOnly bool
	// MaxBuffer is the largest reply in bytes. A larger one costs the connection. Default: 64 MiB.
	MaxBuffer int
	// Auths are sent on each connection, as by AddAuth.
	Auths []Auth
	// OnEvent gets changes of the session's state and watch events, in their order, from one goroutine. While it runs no
	// other event is delivered, and when thousands wait the connection is not read: it must not wait for a method of the
	// Client. Default: events go nowhere.
	OnEvent func(Event)
	// Logger gets the client's log lines. Default: none.
	Logger hclog.Logger
}

// Auth is a credential: for the scheme "digest" it is user:password.
type Auth struct {
	Scheme     string
	Credential []byte
}

// withDefaults returns cfg with defaults filled in, and all that is wrong with it.
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
	for _, d := range []struct {
		name string
		v    *time.Duration
		def  time.Duration
	}{
		{"SessionTimeout", &cfg.SessionTimeout, defaultSessionTimeout},
		{"ConnectTimeout", &cfg.ConnectTimeout, defaultConnectTimeout},
	} {
		if *d.v < 0 {
			errs = append(errs, fmt.Errorf("%s is negative", d.name))
		}
		if *d.v == 0 {
			*d.v = d.def
		}
	}
	if cfg.MaxBuffer < 0 {
		errs = append(errs, errors.New("MaxBuffer is negative"))
	}
	if cfg.MaxBuffer == 0 {
		cfg.MaxBuffer = defaultMaxBuffer
	}
	if cfg.Dial == nil {
		cfg.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", address)
		}
	}
	if cfg.OnEvent == nil {
		cfg.OnEvent = func(Event) {}
	}
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	if err := errors.Join(errs...); err != nil {
		return cfg, fmt.Errorf("client: %w", err)
	}
	return cfg, nil
}

// ParseServers splits a connect string, host[:port],[::1]:2181,... with a chroot like /app behind it or none, into what
// Config wants. Servers without a port get DefaultPort. chroot is "" if there is none.
func ParseServers(connect string) (servers []string, chroot string, err error) {
	list := connect
	if i := strings.IndexByte(connect, '/'); i >= 0 {
		list, chroot = connect[:i], connect[i:]
		if chroot == "/" {
			chroot = ""
		} else if err := proto.ValidatePath(chroot); err != nil {
			return nil, "", fmt.Errorf("client: connect string %q: %w", connect, err)
		}
	}
	for s := range strings.SplitSeq(list, ",") {
		address, err := parseServer(strings.TrimSpace(s))
		if err != nil {
			return nil, "", fmt.Errorf("client: connect string %q: %w", connect, err)
		}
		servers = append(servers, address)
	}
	return servers, chroot, nil
}

func parseServer(s string) (string, error) {
	host, port := s, DefaultPort
	switch bare, err := netip.ParseAddr(s); {
	case err == nil && bare.Is6(): // an IPv6 address without brackets: its colons are no port's
	case strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]"):
		host = s[1 : len(s)-1]
	case strings.ContainsRune(s, ':'):
		var err error
		if host, port, err = net.SplitHostPort(s); err != nil {
			return "", err
		}
	}
	if host == "" {
		return "", fmt.Errorf("%q names no host", s)
	}
	if n, err := net.LookupPort("tcp", port); err != nil || n == 0 {
		return "", fmt.Errorf("%q: %q is no port", s, port)
	}
	return net.JoinHostPort(host, port), nil
}
