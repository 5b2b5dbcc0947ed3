package recipes

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/sasl"
)

// Option configures Connect or Wrap.
type Option func(*config)

type config struct {
	timeout time.Duration
	retry   RetryPolicy
	dialer  func(network, address string, timeout time.Duration) (net.Conn, error)
	// secure makes the connections of a client.Dial TLS connections; nil: none. It is a function,
	// so that programs without WithTLS do not link crypto/tls.
	secure   func(client.Dial) client.Dial
	sasl     sasl.Client // nil: none
	auth     []client.Auth
	acl      []proto.ACL
	log      *slog.Logger
	hooks    client.Hooks
	readOnly bool // see AcceptReadOnly
	// endSuspended: a Hold ends when the connection is lost.
	endSuspended bool
	// waitLog gets the lines of a Connect that waits for a session.
	waitLog *slog.Logger

	maxRequest, maxReply int // in bytes

	suspended func() time.Duration // replaced by tests
}

// SessionTimeout sets the timeout that Connect requests, 10 s by default. A server may grant
// another, of at least two of its ticks.
func SessionTimeout(d time.Duration) Option { return func(c *config) { c.timeout = d } }

// Retry sets when operations are retried after a lost connection. The default is
// Exponential(50*time.Millisecond, time.Second, 10).
func Retry(policy RetryPolicy) Option { return func(c *config) { c.retry = policy } }

// Dialer sets how Connect makes network connections, with a timeout of one second. Default: TCP.
func Dialer(dial func(network, address string, timeout time.Duration) (net.Conn, error)) Option {
	return func(c *config) { c.dialer = dial }
}

// WithTLS makes Connect's network connections TLS connections. If cfg has no ServerName, the
// certificate of a server must be for the host of its address. With a nil cfg they stay plain.
func WithTLS(cfg *tls.Config) Option {
	return func(c *config) {
		if c.secure = nil; cfg == nil {
			return
		}
		c.secure = func(plain client.Dial) client.Dial { return client.DialTLS(cfg, plain) }
	}
}

// WithSASL authenticates each connection that Connect makes, before any other request. If a server
// refuses the credentials, Connect fails with client.ErrSASL. A Client that is refused later, when
// it reconnects, loses its session and goes on trying; the Logger gets the reason.
func WithSASL(exchange sasl.Client) Option { return func(c *config) { c.sasl = exchange } }

// EndHoldsWhenSuspended makes each Hold of the Client end a moment after the state becomes
// Suspended: the leadership of a Latch or Selector, a lock, a locked item, but not a Lease. The
// znode stays until it is released; a Latch does so and joins again at the end of the line.
//
// This is Curator's default, StandardConnectionStateErrorPolicy, which concerns elections only. The
// default here is SessionConnectionStateErrorPolicy: a Hold lasts until its session is lost, since
// nobody else can have it before.
func EndHoldsWhenSuspended() Option { return func(c *config) { c.endSuspended = true } }

// MaxRequest sets the size of the largest request in bytes; with Wrap, of its data and paths. The
// default is ZooKeeper's, one byte less than 1 MiB. A larger request fails at once with a
// *client.TooLargeError: a server would close the connection.
func MaxRequest(bytes int) Option { return func(c *config) { c.maxRequest = bytes } }

// MaxReply sets the size of the largest reply to Connect's Client in bytes, 64 MiB by default. A
// request with a larger reply fails with a *client.TooLargeError.
func MaxReply(bytes int) Option { return func(c *config) { c.maxReply = bytes } }

// Auth adds credentials to the connection. They are sent again on every new connection.
func Auth(scheme string, auth []byte) Option {
	return func(c *config) { c.auth = append(c.auth, client.Auth{Scheme: scheme, Credential: auth}) }
}

// ACL sets the ACL of created znodes and of their created parents, unless an operation gives its
// own. By default everybody may do everything.
func ACL(acl ...proto.ACL) Option { return func(c *config) { c.acl = acl } }

// Logger sets the destination of log lines, including those of package client. By default nothing
// is logged, except that Connect waits for a session. If l is nil, Connect fails.
func Logger(l interface{ Printf(string, ...any) }) Option { return Slog(slog.New(printfHandler{l})) }

// Slog is Logger with levels: what needs attention, such as a lost connection, is a Warn.
func Slog(l *slog.Logger) Option { return func(c *config) { c.log, c.waitLog = l, l } }

// Observe sets hooks for metrics and traces. Request is called for each operation, with the name
// and path as in Error, also for those of recipes, and Reconnect also for a new session.
func Observe(h client.Hooks) Option { return func(c *config) { c.hooks = h } }

// printfHandler writes lines of every level with Printf. The Client uses no groups.
type printfHandler struct {
	l interface{ Printf(string, ...any) }
}

func (h printfHandler) Enabled(context.Context, slog.Level) bool { return true }
func (h printfHandler) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h printfHandler) WithGroup(string) slog.Handler            { return h }
func (h printfHandler) Handle(_ context.Context, r slog.Record) error {
	line := r.Message
	r.Attrs(func(a slog.Attr) bool {
		line += " " + a.String()
		return true
	})
	h.l.Printf("%s", line)
	return nil
}

func newConfig(opts []Option) (config, error) {
	c := config{
		timeout: 10 * time.Second,
		retry:   Exponential(50*time.Millisecond, time.Second, 10),
		dialer:  net.DialTimeout,
		acl:     proto.OpenACL(),
		log:     slog.New(slog.DiscardHandler),

		waitLog:    slog.New(printfHandler{log.Default()}),
		maxRequest: 1<<20 - 1, maxReply: 64 << 20,
		suspended: suspended,
	}
	for _, opt := range opts {
		if opt != nil {
			opt(&c)
		}
	}
	if c.hooks.Reconnect == nil {
		c.hooks.Reconnect = func(string) {}
	}
	var errs []error
	if c.timeout < time.Millisecond {
		errs = append(errs, fmt.Errorf("recipes: session timeout %v is less than a millisecond", c.timeout))
	}
	if c.maxRequest <= 0 || c.maxReply <= 0 {
		errs = append(errs, errors.New("recipes: MaxRequest and MaxReply must be greater than 0"))
	}
	if c.retry == nil || c.dialer == nil || c.log == nil || c.log.Handler() == slog.Handler(printfHandler{}) {
		errs = append(errs, errors.New("recipes: retry policy, dialer and logger must not be nil"))
	}
	if len(c.acl) == 0 {
		errs = append(errs, errors.New("recipes: ACL must not be empty"))
	}
	return c, errors.Join(errs...)
}
