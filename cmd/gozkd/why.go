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
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/clientflags"
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

// runWhy is gozkd why.
func runWhy(ctx context.Context, args []string, env cli.Env) int {
	c := cli.Command{Env: env, Name: "why", Usage: whyUsage}
	fs := flag.NewFlagSet(c.Name, flag.ContinueOnError)
	limit := fs.Int("limit", 10, "")
	var asJSON bool
	cli.OutputFlag(fs, &asJSON)
	var target adminTarget
	words, status, done := target.parse(c, fs, args)
	switch {
	case done:
		return status
	case len(words) != 1 || words[0] == "":
		return c.Misused(errors.New("name one session, address or path"))
	case *limit < 1:
		return c.Misused(errors.New("--limit must be 1 or more"))
	}
	members := target.members(ctx, c)
	all, answered := target.stories(ctx, c, members, url.Values{whatIs(words[0]): {words[0]}, "limit": {strconv.Itoa(*limit)}})
	if answered == 0 {
		return c.Fail(errors.New("no server answered: name the admin endpoint of one that runs with --url"))
	}
	if whatIs(words[0]) == "address" && len(all) > 0 { // only the server of the connection knows the address
		var sessions []string
		for i := range all {
			sessions = append(sessions, all[i].Session)
		}
		all, _ = target.stories(ctx, c, members, url.Values{"session": {strings.Join(sessions, ",")}})
	}
	all = all[:min(len(all), *limit)]
	if asJSON {
		c.PrintJSON(append([]facts.EndedSession{}, all...))
	}
	if len(all) == 0 {
		return c.Fail(fmt.Errorf("no server that answered knows of an ended session that fits %s %s: "+
			"gozkd admin dump lists the live sessions", whatIs(words[0]), words[0]))
	}
	for i := range all {
		if !asJSON {
			cli.Print(env.Out, all[i].Story+"\n"+deleted(&all[i]))
		}
	}
	return cli.OK
}

// stories asks the members for stories, and joins them. answered counts the members that answered.
func (t *adminTarget) stories(
	ctx context.Context, c cli.Command, members []string, query url.Values,
) (told []facts.EndedSession, answered int) {
	for _, endpoint := range members {
		var answer struct {
			Sessions []facts.EndedSession `json:"ended_sessions"`
		}
		text, err := t.ask(ctx, endpoint, "ended_sessions", query)
		if err == nil {
			err = json.Unmarshal([]byte(text), &answer)
		}
		if err != nil {
			_ = c.Fail(fmt.Errorf("%w: what this server knows is missing below; --url takes the endpoints of all members, "+
				"with commas between", err))
			continue
		}
		answered++
		told = append(told, answer.Sessions...)
	}
	return facts.JoinEnded(told), answered
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

// deleted lists the ephemerals that an end has deleted.
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
// of the hosts that it names as members.
func (t *adminTarget) members(ctx context.Context, c cli.Command) []string {
	all := strings.Split(t.endpoint, ",")
	if len(all) > 1 {
		return all
	}
	var others struct{ Peers []struct{ Address string } }
	text, err := t.ask(ctx, all[0], "peers", nil)
	if err == nil {
		err = json.Unmarshal([]byte(text), &others)
	}
	u, wrong := url.Parse(all[0])
	if err = cmp.Or(err, wrong); err != nil {
		_ = c.Fail(fmt.Errorf("%w: the other members are not known", err))
		return all
	}
	for _, p := range others.Peers {
		if host, _, err := net.SplitHostPort(p.Address); err == nil {
			other := *u
			other.Host = net.JoinHostPort(host, u.Port())
			all = append(all, other.String())
		}
	}
	return all
}
