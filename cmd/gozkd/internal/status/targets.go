package status

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/clientflags"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
	"github.com/gozkd/gozkd/internal/probe"
	"github.com/gozkd/gozkd/internal/serverlist"
)

// targets are the servers to ask.
type targets struct {
	addresses []string
	// config is the configuration of this machine's server; nil if -server was given.
	config *config.Config
	// secure: the port of config is that for TLS only.
	secure   bool
	asker    probe.Asker
	security *clientflags.Security
}

// parse adds the common flags to fs and parses args. Its error is for cli.Command.End.
func (t *targets) parse(env cli.Env, fs *flag.FlagSet, args []string) error {
	servers := fs.String("server", "", "")
	fs.DurationVar(&t.asker.Timeout, "timeout", probe.DefaultTimeout, "")
	var secure clientflags.Flags
	secure.Register(fs)
	files, security, err := secure.Parse(env, fs, args)
	switch {
	case err != nil:
		return err
	case t.asker.Timeout <= 0:
		return cli.UsageError{Err: errors.New("-timeout must be a positive duration, such as 5s")}
	case len(files) > 1:
		return cli.UsageError{Err: fmt.Errorf("at most one zoo.cfg is allowed, not %q", files)}
	case *servers != "" && len(files) > 0:
		return cli.UsageError{Err: errors.New("give either -server or a zoo.cfg")}
	}
	t.security, t.asker.Dial, t.asker.Advise = security, security.Dial, security.Advice
	if *servers == "" {
		return t.configured(files, env)
	}
	// Clients' connect strings are accepted: four-letter words ignore a chroot.
	addresses, _, err := client.ParseServers(*servers)
	if err != nil {
		return cli.UsageError{Err: err}
	}
	for _, address := range addresses { // a repeated address would count as two leaders
		if !slices.Contains(t.addresses, address) {
			t.addresses = append(t.addresses, address)
		}
	}
	return nil
}

// configured sets the address of the server that zoo.cfg and the environment configure, as serve
// does. At a port for TLS, without flags of TLS, it takes the server's own certificate.
func (t *targets) configured(file []string, env cli.Env) error {
	_, c, err := config.Load(append([]string{"serve"}, file...), env.Getenv, env.Names())
	if err != nil {
		return err
	}
	t.secure = c.SecureOnly || t.security.TLS() && c.SecureClientPort != 0
	if t.secure {
		c.ClientPort, c.ClientPortAddress = c.SecureClientPort, c.SecureClientPortAddress
	}
	if t.secure && !t.security.TLS() {
		if t.security, err = clientflags.OwnServer(c.ClientTLS, env); err != nil {
			return err
		}
		t.asker.Dial, t.asker.Advise = t.security.Dial, t.security.Advice
	}
	if !t.secure {
		moved(&c)
	}
	if c.ClientPort == 0 {
		return errors.New("the client port is 0, which means any free port: name the server with -server")
	}
	host := c.ClientPortAddress
	if serverlist.AllAddresses(host) {
		host = "localhost"
		t.asker.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			return t.security.Through(ctx, func(ctx context.Context, _, address string) (net.Conn, error) {
				return dialLoopback(ctx, new(net.Dialer).DialContext, address)
			}, address)
		}
	}
	c.ClientPortAddress = host
	t.config, t.addresses = &c, []string{net.JoinHostPort(host, strconv.Itoa(c.ClientPort))}
	return nil
}

// moved makes the client address of c that to which a reconfig has moved the server, as far as its
// data directory says so and can be read.
func moved(c *config.Config) {
	text, _ := os.ReadFile(filepath.Join(c.Server.Dir, "members"))
	known, err := serverlist.ParseFile(string(text))
	line, member := known.Replicated.Get(c.MyID)
	if err != nil || !member || line.ClientPort == 0 || !c.Server.ReconfigEnabled || c.Server.ListenFixed {
		return
	}
	configured, _ := c.Members.Get(c.MyID)
	host, port, err := net.SplitHostPort(line.ListenAddress(configured, c.ListenAddress()))
	if n, wrong := strconv.Atoi(port); err == nil && wrong == nil {
		c.ClientPortAddress, c.ClientPort = host, n
	}
}

// dialLoopback does not look up localhost: a container with only this program has no /etc/hosts.
func dialLoopback(ctx context.Context, dial func(ctx context.Context, network, address string) (net.Conn, error), address string) (net.Conn, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	conn, err := dial(ctx, "tcp", net.JoinHostPort("127.0.0.1", port))
	if err == nil || ctx.Err() != nil {
		return conn, err
	}
	if conn, err6 := dial(ctx, "tcp", net.JoinHostPort("::1", port)); err6 == nil {
		return conn, nil
	}
	return nil, err // without IPv6 support, the error for ::1 would mislead
}
