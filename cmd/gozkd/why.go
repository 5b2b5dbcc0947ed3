package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/adminclient"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/clientflags"
	"github.com/gozkd/gozkd/internal/parallel"
	"github.com/gozkd/gozkd/server/facts"
)

const whyUsage = `usage: gozkd why [flags] SESSION|ADDRESS|PATH

Says why sessions ended, the newest first: a session, such as 0x100000000000001, those of clients at
an address, or that of an ephemeral znode that is gone. All members of the ensemble are asked,
because each knows a part.

flags:
  --url URL,...         the admin endpoints, such as http://HOST:8080. With one, the other members are
                        asked at the same port of their hosts
  --config ZOO.CFG      the server that this file configures. Without either flag, the server that serve
                        would run here
  --auth-file FILE      a file with the Authorization header, which the members on other machines
                        require: digest super:PASSWORD, or a token
  --limit N             the most stories to print (10)
  --output text|json    output format (text)
` + clientflags.TLSUsage + `
Exit status: 0 if a story was found, 1 if not, 2 if the command line is wrong.
`

func runWhy(ctx context.Context, args []string, env cli.Env) int {
	c := cli.Command{Env: env, Name: "why", Usage: whyUsage}
	fs := flag.NewFlagSet(c.Name, flag.ContinueOnError)
	limit := fs.Int("limit", 10, "")
	var asJSON bool
	cli.OutputFlag(fs, &asJSON)
	var target adminTarget
	words, err := target.parse(env, fs, args)
	switch {
	case err != nil:
		return c.End(err)
	case len(words) != 1 || words[0] == "":
		return c.Misused(errors.New("name one session, address or path"))
	case *limit < 1:
		return c.Misused(errors.New("--limit must be 1 or more"))
	}
	members, unnamed, err := target.members(ctx)
	if err != nil {
		return c.Fail(adminclient.WithRemedy(err, "--url"))
	}
	query := url.Values{whatIs(words[0]): {words[0]}, "limit": {strconv.Itoa(*limit)}}
	all, tellers := target.stories(ctx, c, members, query)
	if len(tellers) == 0 {
		return c.Fail(errors.New("no server told which sessions ended: " +
			"name with --url the admin endpoints of those that serve"))
	}
	if n := len(members) + unnamed; len(tellers) < n {
		_ = c.Fail(fmt.Errorf("%d of %d servers told which sessions ended, so a part may be missing: "+
			"--url takes the admin endpoints of all members, with commas between", len(tellers), n))
	}
	if whatIs(words[0]) == "address" && len(all) > 0 { // only the server of the connection knows the address
		var sessions []string
		for i := range all {
			sessions = append(sessions, all[i].Session)
		}
		all, _ = target.stories(ctx, c, tellers, url.Values{"session": {strings.Join(sessions, ",")}})
	}
	all = all[:min(len(all), *limit)]
	if asJSON {
		c.PrintJSON(append([]facts.EndedSession{}, all...))
	}
	if len(all) == 0 {
		return c.Fail(fmt.Errorf("no server that answered knows of an ended session that fits %s %s: a server forgets "+
			"at a restart, but its log keeps the lines 'session expired'; gozkd admin dump lists the live sessions", whatIs(words[0]), words[0]))
	}
	for i := range all {
		if !asJSON {
			cli.Print(env.Out, all[i].Story+"\n"+deleted(&all[i]))
		}
	}
	return cli.OK
}

// stories asks the members for stories, and joins them. tellers are the members that told theirs.
func (t *adminTarget) stories(
	ctx context.Context, c cli.Command, members []string, query url.Values,
) (told []facts.EndedSession, tellers []string) {
	answers := make([]struct {
		Sessions []facts.EndedSession `json:"ended_sessions"`
	}, len(members))
	for i, err := range parallel.Each(len(members), len(members), func(i int) error {
		text, err := t.ask(ctx, members[i], "ended_sessions", query)
		if err == nil {
			err = json.Unmarshal([]byte(text), &answers[i])
		}
		return err
	}) {
		if err != nil {
			_ = c.Fail(err)
			continue
		}
		tellers = append(tellers, members[i])
		told = append(told, answers[i].Sessions...)
	}
	return facts.JoinEnded(told), tellers
}

// whatIs returns which parameter of ended_sessions a word is.
func whatIs(word string) string {
	_, err := strconv.ParseUint(strings.TrimPrefix(word, "0x"), 16, 64)
	switch {
	case word[0] == '/':
		return "path"
	case err == nil && (strings.HasPrefix(word, "0x") || len(word) > 8):
		return "session"
	}
	return "address"
}

func deleted(e *facts.EndedSession) string {
	const shown = 10
	n := len(e.Ephemerals) + e.MoreEphemerals
	if n == 0 {
		return ""
	}
	paths := e.Ephemerals[:min(len(e.Ephemerals), shown)]
	text := "  deleted " + strings.Join(paths, " ")
	if n > len(paths) {
		text += fmt.Sprintf(" and %d more", n-len(paths))
	}
	return text + "\n"
}

// members returns the admin endpoints of the members: those of --url or, if that is one, also those
// of the hosts that it names as members. unnamed counts the members without a host of their own.
func (t *adminTarget) members(ctx context.Context) (all []string, unnamed int, err error) {
	if all = strings.Split(t.endpoint, ","); len(all) > 1 {
		return all, 0, nil
	}
	type peer struct {
		Sid     int
		Address string
	}
	peers := func(endpoint string) ([]peer, error) {
		var answer struct{ Peers []peer }
		text, err := t.ask(ctx, endpoint, "peers", nil)
		if err == nil {
			err = json.Unmarshal([]byte(text), &answer)
		}
		return answer.Peers, err
	}
	others, err := peers(all[0])
	first, wrong := url.Parse(all[0])
	if err = cmp.Or(err, wrong); err != nil {
		return nil, 0, err
	}
	other, hosts := *first, []string{"", first.Hostname()}
	for _, p := range others {
		host, _, _ := net.SplitHostPort(p.Address) // an address that cannot be read has none
		other.Host = net.JoinHostPort(host, first.Port())
		again := slices.Contains(hosts, host)
		if !again && adminclient.Host(&other) == "localhost" { // the first may listen at this address, too
			its, err := peers(other.String())
			again = err == nil && slices.Equal(its, others)
		}
		if again {
			unnamed++
			continue
		}
		hosts = append(hosts, host)
		all = append(all, other.String())
	}
	return all, unnamed, nil
}
