package shell

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Usage says how gozkd cli is called.
const Usage = `usage: gozkd cli [flags] [command [arguments]]

  -server host:port[,host:port ...][/chroot]  the servers, and a path that all others are below (localhost:2181)
  -timeout ms                                 of the session, and how long to wait for it (30000)
  -r                                          accept a server that has no quorum and answers only reads
  -waitforconnection                          accepted for zkCli.sh's sake: gozkd cli always waits
  --output text|json                          how results are printed (text)

Without a command, lines are read from standard input. gozkd cli help lists the commands.`

const (
	defaultServer  = "localhost:2181"
	defaultTimeout = 30 * time.Second
)

// parseArgs divides the command line into flags, which stand before the command, and the command. One dash or two make no
// difference.
func parseArgs(args []string) (set settings, words []string, err error) {
	set = settings{server: defaultServer, timeout: defaultTimeout}
	for len(args) > 0 {
		arg := args[0]
		if !strings.HasPrefix(arg, "-") || arg == "-" {
			return set, args, nil
		}
		args = args[1:]
		name, value, hasValue := strings.Cut(strings.TrimPrefix(arg[1:], "-"), "=")
		next := func() string {
			if !hasValue && len(args) > 0 {
				value, hasValue, args = args[0], true, args[1:]
			}
			if !hasValue {
				err = fmt.Errorf("no argument found for option %s", arg)
			}
			return value
		}
		switch name {
		case "server":
			set.server = next()
		case "timeout":
			ms := next()
			n, parseErr := strconv.ParseInt(ms, 10, 32)
			if err == nil && (parseErr != nil || n <= 0) {
				err = fmt.Errorf("-timeout wants milliseconds, not %q", ms)
			}
			set.timeout = time.Duration(n) * time.Millisecond
		case "r":
			set.readOnly = true
		case "waitforconnection":
		case "client-configuration":
			err = fmt.Errorf("-client-configuration is for TLS and SASL, which gozkd cli does not speak")
		case "output":
			switch o := next(); {
			case err != nil:
			case o != "text" && o != "json":
				err = fmt.Errorf("--output is text or json, not %q", o)
			default:
				set.json = o == "json"
			}
		case "help", "h":
			set.help = true
		default:
			err = fmt.Errorf("unknown option %s", arg)
		}
		if err != nil {
			return set, nil, err
		}
	}
	return set, nil, nil
}
