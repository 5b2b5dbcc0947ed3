// Package status is gozkd status and gozkd ruok, which ask servers for their state and return it as
// an exit status for scripts and health checks.
//
// Both ask with the four-letter word srvr, which every gozkd and every Apache ZooKeeper answers,
// whatever its whitelist.
package status

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/clientflags"
	"github.com/gozkd/gozkd/internal/probe"
	"github.com/gozkd/gozkd/server/facts"
)

const usage = `usage: gozkd status [flags] [zoo.cfg]

Asks the server that zoo.cfg configures for its role. Without a zoo.cfg the defaults of serve apply.
The states of several servers are printed as a table.

flags:
  -server HOST:PORT,...  ask these servers instead
  -timeout TIME          limit for all answers; all servers are asked at once (5s)
  -output text|json      output format (text)
` + clientflags.Usage + `
Exit status: 0 if the server serves clients and, of several servers, exactly one leads, the others
follow, and no other voter is cut off from them; 1 otherwise; 2 if the command line is wrong.
`

const ruokUsage = `usage: gozkd ruok [flags] [zoo.cfg]

Asks the server that zoo.cfg configures whether it is alive, and prints imok if it is. Without a
zoo.cfg the defaults of serve apply.

flags:
  -server HOST:PORT,...  ask these servers instead; all must be alive
  -ready                 ask whether it serves clients: a member without a quorum is alive, but not
                         ready
  -timeout TIME          timeout for each server (5s)
` + clientflags.Usage + `
Exit status: 0 if yes, 1 if no, 2 if the command line is wrong.
`

// Main is gozkd status.
func Main(ctx context.Context, args []string, env cli.Env) int {
	var t targets
	c := cli.Command{Env: env, Name: "status", Usage: usage}
	fs := flag.NewFlagSet(c.Name, flag.ContinueOnError)
	var json bool
	cli.OutputFlag(fs, &json)
	if err := t.parse(env, fs, args); err != nil {
		return c.End(err)
	}
	servers := ask(ctx, t, true)
	answers, silent, settings := answers(servers)
	others, data := probe.OtherPeers(answers, silent, settings), probe.DataStatus(answers)
	problems := judge(servers, others)
	archive, warnings := "", []string{data}
	for i := range servers {
		if text := servers[i].state.Certificates; text != "" {
			warnings = append(warnings, servers[i].address+": "+text)
		}
		archive = cmp.Or(archive, servers[i].state.Archive)
	}
	var err error
	switch {
	case json:
		err = writeJSON(env.Out, servers, others, data, archive, problems)
	case len(servers) == 1:
		err = writeOne(env.Out, t, servers[0])
	default:
		err = writeTable(env.Out, servers, others)
	}
	for _, warning := range append(warnings, archive) {
		if !json && warning != "" && err == nil {
			_, err = fmt.Fprintln(env.Out, warning)
		}
	}
	if err != nil {
		problems = append(problems, "writing the answer: "+err.Error())
	}
	return report(c, problems)
}

// Ruok is gozkd ruok.
func Ruok(ctx context.Context, args []string, env cli.Env) int {
	var t targets
	c := cli.Command{Env: env, Name: "ruok", Usage: ruokUsage}
	fs := flag.NewFlagSet(c.Name, flag.ContinueOnError)
	ready := fs.Bool("ready", false, "")
	if err := t.parse(env, fs, args); err != nil {
		return c.End(err)
	}
	var problems []string
	servers := ask(ctx, t, *ready)
	for i := range servers {
		if p := servers[i].problem(*ready); p != "" {
			problems = append(problems, servers[i].address+": "+p)
		}
	}
	if len(problems) == 0 {
		if _, err := fmt.Fprintln(env.Out, "imok"); err != nil {
			problems = append(problems, "writing the answer: "+err.Error())
		}
	}
	return report(c, problems)
}

func report(c cli.Command, problems []string) (status int) {
	for _, p := range problems {
		status = c.Fail(errors.New(p))
	}
	return status
}

// server is a server and its answer.
type server struct {
	address string
	state   probe.State
	err     error
	// monitor is nil if the server does not answer mntr.
	monitor probe.Monitor
	// settings has no members if the server does not answer mntr and conf, or is asked alone.
	settings probe.Settings
	// links is how many connections to and from other servers it has, and secure how many of them
	// use TLS; 0 if unknown.
	secure, links int64
}

// ask asks all servers concurrently, a gozkd also for mntr and conf if monitor is true, and returns
// them in the order of t.addresses. All words of all servers share one limit.
func ask(ctx context.Context, t targets, monitor bool) []server {
	ctx, cancel := t.asker.Bound(ctx)
	defer cancel()
	servers := make([]server, len(t.addresses))
	var asking sync.WaitGroup
	for i, address := range t.addresses {
		asking.Go(func() { // bounded by ctx; awaited below
			s := &servers[i]
			s.address = address
			s.state, s.err = probe.AskState(ctx, t.asker.Ask, address)
			if s.err != nil || !monitor || !s.state.Gozkd() {
				return
			}
			mntr, err := t.asker.Ask(ctx, address, "mntr")
			if err != nil {
				return
			}
			s.monitor = probe.ParseMonitor(mntr)
			s.secure, s.links = s.monitor.PeerLinks()
			if len(servers) == 1 {
				return
			}
			if conf, err := t.asker.Ask(ctx, address, "conf"); err == nil {
				s.settings = probe.ParseSettings(conf)
			}
		})
	}
	asking.Wait()
	return servers
}

// answers returns the answers to mntr, the silent addresses, and an answer to conf with members.
func answers(servers []server) (answers []probe.Monitor, silent []string, settings probe.Settings) {
	for i := range servers {
		s := &servers[i]
		if s.monitor == nil {
			silent = append(silent, s.address)
			continue
		}
		answers = append(answers, s.monitor)
		if len(settings.Members) == 0 {
			settings = s.settings
		}
	}
	return answers, silent, settings
}

// problem returns why a server is not alive or, with ready, not ready; otherwise "". The answer to
// srvr decides, as few whitelists contain ruok. A server that says it does not serve is alive.
func (s *server) problem(ready bool) string {
	switch {
	case errors.Is(s.err, probe.ErrNotServing):
		if !ready {
			return ""
		}
		return "alive, but not ready: it is not part of a quorum, or has not caught up yet; its log says which"
	case s.err != nil:
		return probe.Cause(s.err)
	case ready && s.state.Mode == facts.ReadOnly:
		return "alive, but serves only reads: " + s.monitor.WhyReadOnly()
	}
	return ""
}

// judge returns a sentence for each problem of the servers: none if every server serves
// clients and, of several, exactly one leads, or they follow one of the others.
func judge(servers []server, others []probe.Peer) []string {
	var problems, leaders []string
	known, follow := true, true
	for i := range servers {
		s := &servers[i]
		follow = follow && (s.state.Mode == facts.Follower || s.state.Mode == facts.Observer)
		switch {
		case s.err != nil:
			why := s.address + ": " + probe.Cause(s.err)
			if errors.Is(s.err, probe.ErrNotServing) {
				why += "; its log says why"
			}
			problems, known = append(problems, why), false
		case s.state.Mode == facts.ReadOnly:
			problems = append(problems, s.address+": serves only reads: "+s.monitor.WhyReadOnly())
		case s.state.Outside != "":
			problems = append(problems, s.address+": "+s.state.Outside)
		case s.state.Mode == facts.Standalone && len(servers) > 1:
			problems = append(problems, s.address+": is standalone, not a member of an ensemble")
		case s.state.Mode == facts.Leader:
			leaders = append(leaders, s.address)
		}
	}
	switch {
	case len(servers) == 1, len(leaders) == 1:
	case len(leaders) > 1:
		problems = append(problems, fmt.Sprintf("%d servers lead: %s", len(leaders), strings.Join(leaders, ", ")))
	case slices.ContainsFunc(others, func(p probe.Peer) bool { return p.Role == facts.Leader }):
	case follow: // a server without a leader does not call itself a follower
		problems = append(problems, "which server leads is unknown: name all with -server")
	case known:
		problems = append(problems, "no server leads")
	default:
		problems = append(problems, "no server that answered leads")
	}
	for _, p := range others {
		if p.Role == probe.PeerCutOff && !p.Observer && len(servers) > 1 {
			problems = append(problems, fmt.Sprintf("server.%d: cut off from the servers that answered", p.ID))
		}
	}
	return problems
}
