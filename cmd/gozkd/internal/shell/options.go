package shell

import (
	"errors"
	stdflag "flag"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
)

// Usage is the usage text of gozkd cli.
const Usage = `usage: gozkd cli [flags] [command [arguments]]

  -server host:port[,host:port ...][/chroot]  servers, and the path that all other paths are below
                                              (localhost:2181)
  -timeout ms                                 session timeout, and how long to wait for a session
                                              (30000)
  -r                                          accept a server without a quorum, which answers reads
                                              only
  -waitforconnection                          accepted for compatibility: gozkd cli always waits
  --output text|json                          output format (text)

Without a command, gozkd cli reads lines from standard input. The command help lists all commands.`

// settings are the flags of gozkd cli.
type settings struct {
	server   string
	timeout  time.Duration
	readOnly bool
	json     bool
	help     bool
}

// parseSettings reads the flags, which precede the command, and returns the words of the command.
func parseSettings(args []string) (set settings, words []string, err error) {
	set = settings{timeout: 30 * time.Second}
	fs := stdflag.NewFlagSet("cli", stdflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&set.server, "server", "localhost:2181", "")
	fs.Func("timeout", "", func(v string) error {
		n, err := strconv.ParseInt(v, 10, 32)
		if err != nil || n <= 0 {
			return errors.New("must be a number of milliseconds")
		}
		set.timeout = time.Duration(n) * time.Millisecond
		return nil
	})
	fs.BoolVar(&set.readOnly, "r", false, "")
	fs.Bool("waitforconnection", false, "")
	fs.Func("client-configuration", "", func(string) error { return errors.New("gozkd cli does not support TLS and SASL") })
	fs.Func("output", "", func(v string) (err error) {
		set.json, err = cli.Output(v)
		return err
	})
	err = fs.Parse(args)
	if errors.Is(err, stdflag.ErrHelp) {
		set.help, err = true, nil
	}
	if err != nil {
		return set, nil, fmt.Errorf("command line: %w", err)
	}
	return set, fs.Args(), nil
}
