package status

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/probe"
)

// targets are the servers that a command line names.
type targets struct {
	addresses []string
	// config is what the server of this machine would serve with, where no -server was given.
	config *config.Config
	asker  probe.Asker
}

// flags adds to a set what both commands have, and returns what to call with the arguments.
func (t *targets) flags(fs *flag.FlagSet) (parse func(args []string, env cli.Env) error) {
	fs.SetOutput(io.Discard) // the usage follows the error, on Err
	servers := fs.String("server", "", "")
	fs.DurationVar(&t.asker.Timeout, "timeout", probe.DefaultTimeout, "")
	return func(args []string, env cli.Env) error {
		var files []string
		for len(args) > 0 { // flags may stand behind the file too
			if err := fs.Parse(args); err != nil {
				return usageError{err}
			}
			if args = fs.Args(); len(args) > 0 {
				files, args = append(files, args[0]), args[1:]
			}
		}
		switch {
		case t.asker.Timeout <= 0:
			return usageError{errors.New("-timeout is a time such as 5s")}
		case len(files) > 1:
			return usageError{fmt.Errorf("one zoo.cfg at most, not %q", files)}
		case *servers != "" && len(files) > 0:
			return usageError{errors.New("either -server or a zoo.cfg")}
		case *servers != "":
			// A connect string of clients may be given as it is: the words know no chroot.
			list, _, err := client.ParseServers(*servers)
			if err != nil {
				return usageError{err}
			}
			for _, address := range list { // one that is named twice would be two leaders
				if !slices.Contains(t.addresses, address) {
					t.addresses = append(t.addresses, address)
				}
			}
			return nil
		}
		return t.configured(files, env)
	}
}

// configured takes the server that zoo.cfg and the environment configure, as serve does.
func (t *targets) configured(file []string, env cli.Env) error {
	inv, err := config.Load(append([]string{"serve"}, file...), env.Getenv, nil)
	if err != nil {
		return err
	}
	c := inv.Config
	if c.ClientPort == 0 {
		return errors.New("the client port is 0, any free one: name it with -server")
	}
	host := c.ClientPortAddress
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "localhost"
		t.asker.Dial = func(ctx context.Context, address string) (net.Conn, error) {
			return dialLoopback(ctx, new(net.Dialer).DialContext, address)
		}
	}
	c.ClientPortAddress = host
	t.config, t.addresses = &c, []string{net.JoinHostPort(host, strconv.Itoa(c.ClientPort))}
	return nil
}

// dialLoopback connects to a port of this machine. The name localhost is not looked up: an image with nothing but the program in it has no /etc/hosts.
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
	return nil, err // where there is no IPv6, its error would mislead
}

// usageError is a wrong command line.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

// wrong prints why a command line or configuration can't be used, and returns the exit status.
func wrong(env cli.Env, command, usage string, err error) int {
	if errors.Is(err, flag.ErrHelp) {
		_, _ = io.WriteString(env.Out, usage) // when Out fails there is nowhere to say so
		return cli.OK
	}
	if bad := (*config.Error)(nil); errors.As(err, &bad) {
		for _, p := range bad.Problems {
			fmt.Fprintf(env.Err, "gozkd %s: %s\n", command, p)
		}
		return cli.Failed
	}
	fmt.Fprintf(env.Err, "gozkd %s: %v\n", command, err)
	if bad := (usageError{}); errors.As(err, &bad) {
		fmt.Fprintf(env.Err, "\n%s", usage)
		return cli.Usage
	}
	return cli.Failed
}
