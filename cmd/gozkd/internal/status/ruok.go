package status

import (
	"context"
	"errors"
	"flag"
	"fmt"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/probe"
)

const ruokUsage = `usage: gozkd ruok [flags] [zoo.cfg]

Asks the server that zoo.cfg configures, or this one's defaults, whether it lives, and prints imok if so.

flags:
  -server HOST:PORT,...  ask these; all of them must live
  -ready                 ask whether it serves clients too: a member without a quorum lives, but is not ready
  -timeout TIME          wait so long for each (5s)

Exit status: 0 if it is so, 1 if not, 2 when the command line is wrong.
`

// Ruok is gozkd ruok.
func Ruok(ctx context.Context, args []string, env cli.Env) int {
	var t targets
	fs := flag.NewFlagSet("ruok", flag.ContinueOnError)
	ready := fs.Bool("ready", false, "")
	if err := t.flags(fs)(args, env); err != nil {
		return wrong(env, "ruok", ruokUsage, err)
	}
	var problems []string
	servers := ask(ctx, t)
	for i := range servers {
		if p := servers[i].illness(*ready); p != "" {
			problems = append(problems, servers[i].address+": "+p)
		}
	}
	if len(problems) > 0 {
		for _, p := range problems {
			fmt.Fprintln(env.Err, "gozkd ruok:", p)
		}
		return cli.Failed
	}
	if _, err := fmt.Fprintln(env.Out, "imok"); err != nil {
		fmt.Fprintln(env.Err, "gozkd ruok: writing the answer:", err)
		return cli.Failed
	}
	return cli.OK
}

// illness returns why a server is not well, or "". The question is srvr and not ruok, which few whitelists have: a server that says that it
// does not serve is as alive as one that says imok.
func (s *server) illness(ready bool) string {
	switch {
	case errors.Is(s.err, probe.ErrNotServing):
		if !ready {
			return ""
		}
		return "lives, but is not ready: it is not part of a quorum"
	case s.err != nil:
		return probe.Cause(s.err)
	case ready && s.state.Mode == probe.ModeReadOnly:
		return "lives, but serves reads only: it is not part of a quorum"
	}
	return ""
}
