package status

import (
	"context"
	"flag"
	"fmt"
	"sync"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/probe"
)

const usage = `usage: gozkd status [flags] [zoo.cfg]

Asks the server that zoo.cfg configures, or this one's defaults, what it is. Several servers are a table.

flags:
  -server HOST:PORT,...  ask these
  -timeout TIME          wait so long for each (5s)
  -output text|json      (text)

Exit status: 0 if the server serves, and of several exactly one leads and the others follow; 1 if not; 2 when the command line is wrong.
`

// Main is gozkd status.
func Main(ctx context.Context, args []string, env cli.Env) int {
	var t targets
	fs := flag.NewFlagSet("status", flag.ContinueOnError)
	output := fs.String("output", "text", "")
	err := t.flags(fs)(args, env)
	if err == nil && *output != "text" && *output != "json" {
		err = usageError{fmt.Errorf("-output is text or json, not %q", *output)}
	}
	if err != nil {
		return wrong(env, "status", usage, err)
	}
	servers := ask(ctx, t)
	problems := judge(servers)
	switch {
	case *output == "json":
		err = writeJSON(env.Out, servers, problems)
	case len(servers) == 1:
		err = writeOne(env.Out, t, servers[0])
	default:
		err = writeTable(env.Out, servers)
	}
	if err != nil {
		problems = append(problems, "writing the answer: "+err.Error())
	}
	for _, p := range problems {
		fmt.Fprintln(env.Err, "gozkd status:", p)
	}
	if len(problems) > 0 {
		return cli.Failed
	}
	return cli.OK
}

// server is one that was asked.
type server struct {
	address string
	state   probe.State
	err     error
}

// ask asks all at the same time and returns them in their order.
func ask(ctx context.Context, t targets) []server {
	servers := make([]server, len(t.addresses))
	var asking sync.WaitGroup
	for i, address := range t.addresses {
		asking.Go(func() { // bounded by the asker's timeout; awaited below
			s := server{address: address}
			var answer string
			if answer, s.err = t.asker.Ask(ctx, address, "srvr"); s.err == nil {
				if s.state, s.err = probe.ParseState(answer); s.err != nil {
					s.err = &probe.Error{Address: address, Word: "srvr", Err: s.err}
				}
			}
			servers[i] = s
		})
	}
	asking.Wait()
	return servers
}
