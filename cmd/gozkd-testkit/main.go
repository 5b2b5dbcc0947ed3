// Command gozkd-testkit runs a server or an ensemble of gozkd for tests in any language. HTTP
// requests stop, kill, partition and delay its members: see --help and docs/guide/testing.md.
//
// The exit status is 0 after SIGINT or SIGTERM, 1 after a failure, and 2 if the command line is
// wrong. That of gozkd-testkit run is the command's, 125 if the servers fail, and 127 if the
// command cannot be started.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/cmd/gozkd-testkit/internal/faultsapi"
	"github.com/gozkd/gozkd/internal/cluster"
	"github.com/gozkd/gozkd/internal/printable"
	"github.com/gozkd/gozkd/internal/version"
)

const usage = `usage: gozkd-testkit [flags]
       gozkd-testkit run [flags] -- COMMAND [ARGUMENT...]

Runs a server, or an ensemble in one process, for tests. HTTP requests to 127.0.0.1 stop, kill, pause and partition its
members, lose replies, expire sessions and let time pass; GET / lists them (docs/guide/testing.md).

run starts the servers, runs the command with their addresses in ZOOKEEPER_CONNECT, stops the servers, and exits
with the status of the command. GOZKD_TESTKIT_FAULTS has the address for HTTP requests.

flags:
  --ensemble N           run an ensemble of N servers, 1 to 9 (default: one server alone)
  --client-port PORT     port for clients; the members of an ensemble have consecutive ports (default 0: free ports)
  --client-address HOST  address to listen on for clients (default 127.0.0.1)
  --faults-port PORT     port for the HTTP requests, on 127.0.0.1 (default 0: a free port)
  --port-file FILE       once ready, write one JSON line with the addresses:
                         {"client":"127.0.0.1:2181","members":[...],"faults":"http://127.0.0.1:8080"}
  --data-dir DIR         keep the data in DIR (default: in memory)
  --stdin                once ready, write the address for HTTP requests as a line to standard output, and end
                         when standard input ends: with the program that holds the other ends of them
  --tick DURATION        ZooKeeper's tickTime (default 500ms)
  --log-level LEVEL      trace, debug, info, warn, error or off (default info; of run: error)
  --log-json             log one JSON object per line
  --fault JSON           run: arm a fault, such as {"kind":"dropReply","op":"create"}; several are allowed
  --seed N               run: let faults happen that are drawn from N > 0, one after the other
  --runs N               run: run the command N times, with seeds from --seed on, or drawn ones, until it fails
  --version              print the version
  --help                 print this text
`

// options is the command line.
type options struct {
	cluster    cluster.Config
	faultsPort int
	portFile   string
	logLevel   string
	logJSON    bool
	version    bool
	stdin      bool

	// Of run, which has a command.
	flags   []string // that were given, without --seed and --runs
	command []string
	faults  []string
	seed    uint64
	runs    int
}

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run executes a command line and returns the exit status.
func run(args []string, in io.Reader, out, errOut io.Writer) int {
	o, err := parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		_, _ = io.WriteString(out, usage)
		return 0
	case err != nil:
		_, _ = fmt.Fprintf(errOut, "gozkd-testkit: %s\n\n%s", printable.Error(err), usage)
		return 2
	case o.version:
		_, _ = fmt.Fprintln(out, "gozkd-testkit", version.Get().Line())
		return 0
	}
	stop, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if o.stdin {
		// Ends with the input, or with the process.
		go func() {
			_, _ = io.Copy(io.Discard, in) // also a broken input is an end
			cancel()
		}()
	}
	if o.command != nil {
		return execute(stop, o, in, out, errOut)
	}
	err = serve(stop, o, errOut, func(ctx context.Context, c *cluster.Cluster, f *faultsapi.Server) error {
		if o.stdin {
			_, _ = fmt.Fprintln(out, f.URL()) // standard input ends, too, when nobody reads this
		}
		return c.Await(ctx)
	})
	if err != nil {
		_, _ = fmt.Fprintf(errOut, "gozkd-testkit: %s\n", printable.Error(err))
		return 1
	}
	return 0
}

func parse(args []string) (*options, error) {
	o := new(options)
	fs := flag.NewFlagSet("gozkd-testkit", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // run prints the error and the usage text
	fs.IntVar(&o.cluster.Members, "ensemble", 1, "")
	fs.IntVar(&o.cluster.ClientPort, "client-port", 0, "")
	fs.StringVar(&o.cluster.Host, "client-address", "127.0.0.1", "")
	fs.IntVar(&o.faultsPort, "faults-port", 0, "")
	fs.StringVar(&o.portFile, "port-file", "", "")
	fs.StringVar(&o.cluster.Dir, "data-dir", "", "")
	fs.DurationVar(&o.cluster.Server.Tick, "tick", 500*time.Millisecond, "")
	fs.StringVar(&o.logLevel, "log-level", "info", "")
	fs.BoolVar(&o.logJSON, "log-json", false, "")
	fs.BoolVar(&o.version, "version", false, "")
	run := len(args) > 0 && args[0] == "run"
	if run {
		args, o.logLevel = args[1:], "error"
		fs.Func("fault", "", func(spec string) error {
			o.faults = append(o.faults, spec)
			return nil
		})
		fs.Uint64Var(&o.seed, "seed", 0, "")
		fs.IntVar(&o.runs, "runs", 1, "")
	} else {
		fs.BoolVar(&o.stdin, "stdin", false, "")
	}
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if run {
		o.command = fs.Args()
		fs.Visit(func(f *flag.Flag) {
			switch f.Name {
			case "seed", "runs", "fault": // which may have several values
			case "log-json": // a flag without a word after it
				o.flags = append(o.flags, "--log-json="+f.Value.String())
			default:
				o.flags = append(o.flags, "--"+f.Name, f.Value.String())
			}
		})
		for _, spec := range o.faults {
			o.flags = append(o.flags, "--fault", spec)
		}
		if o.runs > 1 {
			o.seed = cmp.Or(o.seed, rand.Uint64N(1<<32), 1)
		}
	}
	n, first := o.cluster.Members, o.cluster.ClientPort
	switch {
	case run && fs.NArg() == 0:
		return nil, errors.New("run needs a command: gozkd-testkit run -- COMMAND")
	case run && o.runs < 1:
		return nil, fmt.Errorf("--runs is %d; allowed: 1 and more", o.runs)
	case !run && fs.NArg() > 0:
		return nil, fmt.Errorf("unexpected argument %q", fs.Arg(0))
	case n < 1 || n > cluster.MaxMembers:
		return nil, fmt.Errorf("--ensemble is %d; allowed: 1 to %d", n, cluster.MaxMembers)
	case first < 0 || first+n-1 > 65535:
		return nil, fmt.Errorf("--client-port is %d; allowed: 0 to %d", first, 65536-n)
	case o.faultsPort < 0 || o.faultsPort > 65535:
		return nil, fmt.Errorf("--faults-port is %d; allowed: 0 to 65535", o.faultsPort)
	case first > 0 && first <= o.faultsPort && o.faultsPort < first+n:
		return nil, fmt.Errorf("--faults-port is %d, which is a client port: these are %d to %d", o.faultsPort, first, first+n-1)
	case hclog.LevelFromString(o.logLevel) == hclog.NoLevel:
		return nil, fmt.Errorf("--log-level is %q; allowed: trace, debug, info, warn, error, off", o.logLevel)
	}
	return o, nil
}

// serve runs the servers while use runs, which ends with ctx.
func serve(
	ctx context.Context, o *options, errOut io.Writer,
	use func(ctx context.Context, c *cluster.Cluster, f *faultsapi.Server) error,
) (err error) {
	log := hclog.New(&hclog.LoggerOptions{
		Name: "gozkd-testkit", Level: hclog.LevelFromString(o.logLevel), Output: errOut, JSONFormat: o.logJSON,
	})
	o.cluster.Logger = log
	c, err := cluster.Start(ctx, o.cluster)
	if err != nil {
		if ctx.Err() != nil {
			return nil // stopped before the members were ready
		}
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	faults, err := faultsapi.Start(c, o.faultsPort, log.Named("faults"))
	if err != nil {
		return err
	}
	defer func() {
		if err := faults.Close(); err != nil {
			log.Warn("requests for faults did not end", "error", err)
		}
	}()
	log.Info("all members serve", "connect", c.ConnectString(), "faults", faults.URL())
	where := c.Ports()
	where.Faults = faults.URL()
	if err := where.Write(o.portFile); err != nil {
		return err
	}
	defer where.Remove(o.portFile)
	defer log.Info("stopping")
	return use(ctx, c, faults)
}
