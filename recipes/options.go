package recipes

import (
	"errors"
	"net"
	"time"

	"github.com/go-zookeeper/zk"
)

// DefaultSessionTimeout is what Connect asks for. The server may give another one.
const DefaultSessionTimeout = 10 * time.Second

// Option changes what Connect or Wrap make.
type Option func(*config)

type config struct {
	timeout time.Duration
	retry   RetryPolicy
	dialer  zk.Dialer
	auth    []credentials
	acl     []zk.ACL
	logger  zk.Logger

	suspended func() time.Duration // tests suspend the machine
}

type credentials struct {
	scheme string
	auth   []byte
}

// SessionTimeout is what Connect asks for. A server gives at least two of its ticks.
func SessionTimeout(d time.Duration) Option { return func(c *config) { c.timeout = d } }

// Retry is when operations try again after a connection was lost. The default is Exponential(50 ms, 1 s, 10).
func Retry(policy RetryPolicy) Option { return func(c *config) { c.retry = policy } }

// Dialer makes Connect's network connections, over TLS for one. The default is TCP. timeout is a second.
func Dialer(dial func(network, address string, timeout time.Duration) (net.Conn, error)) Option {
	return func(c *config) { c.dialer = dial }
}

// Auth adds credentials to the connection, also when it has been lost and made again.
func Auth(scheme string, auth []byte) Option {
	return func(c *config) { c.auth = append(c.auth, credentials{scheme, auth}) }
}

// ACL is what znodes are created with, where nothing else is said, and those above them. By default everybody may do everything.
func ACL(acl ...zk.ACL) Option { return func(c *config) { c.acl = acl } }

// Logger takes the log lines, those of Connect's zk.Conn too. By default there are none.
func Logger(l zk.Logger) Option { return func(c *config) { c.logger = l } }

type discardLogger struct{}

func (discardLogger) Printf(string, ...any) {}

func newConfig(opts []Option) (config, error) {
	c := config{
		timeout:   DefaultSessionTimeout,
		retry:     Exponential(50*time.Millisecond, time.Second, 10),
		dialer:    net.DialTimeout,
		acl:       zk.WorldACL(zk.PermAll),
		logger:    discardLogger{},
		suspended: suspended,
	}
	for _, opt := range opts {
		opt(&c)
	}
	var errs []error
	if c.timeout < time.Millisecond {
		errs = append(errs, errors.New("recipes: a session timeout of less than a millisecond"))
	}
	if c.retry == nil || c.dialer == nil || c.logger == nil {
		errs = append(errs, errors.New("recipes: a nil retry policy, dialer or logger"))
	}
	if len(c.acl) == 0 {
		errs = append(errs, errors.New("recipes: an empty ACL"))
	}
	return c, errors.Join(errs...)
}
