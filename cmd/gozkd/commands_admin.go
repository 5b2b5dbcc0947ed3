package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/adminclient"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive/store"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/clientflags"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
	"github.com/gozkd/gozkd/internal/serverlist"
)

const adminUsage = `usage: gozkd admin [flags] COMMAND [NAME=VALUE ...]

Runs an admin command of a running server and prints its answer, for example
  gozkd admin dump                               list the sessions and their ephemeral znodes
  gozkd admin expire_session id=0x100000000001   end a session
  gozkd admin transfer_leadership to=2           at the leader: make server 2 the leader; without to=
                                                 any server
  gozkd admin reload                             read zoo.cfg again
docs/reference/monitoring.md lists the commands and who may run them.

flags:
  --url URL         the admin endpoint, such as http://HOST:8080
  --config ZOO.CFG  the server that this file configures. Without both flags, the server that serve
                    would run here
  --auth-file FILE  a file with the Authorization header: digest super:PASSWORD, or a token, such as
                    DATA-DIR/admin.token on the server's machine. Without the flag, a server on this
                    machine gets the token of the server that --config names or serve would run here
` + clientflags.TLSUsage + `
Exit status: 0 if the command was run, 1 if not, 2 if the command line is wrong.
`

// adminPatience is how long an answer may take. A server gives up ending a session after 10 s.
const adminPatience = time.Minute

func runAdmin(ctx context.Context, args []string, env cli.Env) int {
	c := cli.Command{Env: env, Name: "admin", Usage: adminUsage}
	fs := flag.NewFlagSet(c.Name, flag.ContinueOnError)
	var target adminTarget
	words, err := target.parse(env, fs, args)
	if err != nil {
		return c.End(err)
	}
	query, wrong := adminParameters(words)
	if wrong != nil {
		return c.Misused(wrong)
	}
	answer, err := target.ask(ctx, target.endpoint, words[0], query)
	if err != nil {
		return c.Fail(adminclient.WithRemedy(err, "--url"))
	}
	_, err = io.WriteString(env.Out, strings.TrimRight(answer, "\n")+"\n")
	return c.End(err)
}

// adminTarget is the server that admin commands go to.
type adminTarget struct {
	endpoint, authFile string
	serve              []string // the arguments of serve that configure the server
	security           *clientflags.Security
	env                cli.Env
}

// parse adds the flags to fs and parses args. Its error is for cli.Command.End.
func (t *adminTarget) parse(env cli.Env, fs *flag.FlagSet, args []string) (words []string, err error) {
	t.env = env
	fs.StringVar(&t.endpoint, "url", "", "")
	cli.Alias(fs, "server", "url")
	zooCfg := fs.String("config", "", "")
	fs.StringVar(&t.authFile, "auth-file", "", "")
	var secure clientflags.Flags
	secure.RegisterTLS(fs)
	if words, t.security, err = secure.Parse(env, fs, args); err != nil {
		return nil, err
	}
	if *zooCfg != "" {
		t.serve = []string{*zooCfg}
	}
	if t.endpoint == "" {
		if t.endpoint, err = adminEndpoint(env, t.serve); err != nil {
			return nil, err
		}
	}
	for endpoint := range strings.SplitSeq(t.endpoint, ",") {
		where, err := adminURL(endpoint, "", nil)
		if err == nil && t.security.TLS() && where.Scheme == "http" {
			err = errors.New("the flags of TLS are for an admin endpoint at https://HOST:8080")
		}
		if err != nil {
			return nil, cli.UsageError{Err: err}
		}
	}
	return words, nil
}

// ask runs a command at an endpoint.
func (t *adminTarget) ask(ctx context.Context, endpoint, command string, query url.Values) (answer string, err error) {
	where, err := adminURL(endpoint, command, query)
	if err != nil {
		return "", err
	}
	authorization, err := adminclient.Authorization(endpoint, t.authFile, t.env, t.serve...)
	if err != nil {
		return "", err
	}
	return askAdmin(ctx, where, authorization, t.security)
}

// adminParameters checks the words of a command line and returns the parameters of the command.
func adminParameters(words []string) (url.Values, error) {
	if len(words) == 0 {
		return nil, errors.New("name the command to run")
	}
	if words[0] == "snapshot" || words[0] == "snap" {
		return nil, errors.New("use gozkd backup, which also verifies the snapshot")
	}
	query := url.Values{}
	for _, w := range words[1:] {
		name, value, ok := strings.Cut(w, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("%q is not NAME=VALUE", w)
		}
		query.Set(name, value)
	}
	return query, nil
}

// adminEndpoint returns the URL of the admin commands of the server that serve would run.
func adminEndpoint(env cli.Env, serve []string) (string, error) {
	_, c, err := config.Load(append([]string{"serve"}, serve...), env.Getenv, env.Names())
	if err != nil {
		return "", err
	}
	if !c.AdminEnabled || c.AdminPort == 0 {
		return "", errors.New("the server that serve would run here has no admin endpoint with a fixed port: name one with --url")
	}
	host := c.AdminAddress
	if serverlist.AllAddresses(host) {
		host = "127.0.0.1"
	}
	u := url.URL{Scheme: "http", Host: net.JoinHostPort(host, strconv.Itoa(c.AdminPort)), Path: c.AdminCommandURL}
	if c.AdminForceHTTPS {
		u.Scheme = "https"
	}
	return u.String(), nil
}

// adminURL returns the URL of a command. The path of an endpoint is by default ZooKeeper's.
func adminURL(endpoint, command string, query url.Values) (*url.URL, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("the admin endpoint is %q; allowed: a URL such as http://HOST:8080, "+
			"with the port of the admin server, not that of clients", store.ShownURL(endpoint))
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/commands"
	}
	u = u.JoinPath(url.PathEscape(command))
	u.RawQuery = query.Encode()
	return u, nil
}

// askAdmin runs a command. A server refuses GET at once for a command that needs POST.
func askAdmin(ctx context.Context, where *url.URL, authorization string, security *clientflags.Security) (answer string, err error) {
	send := func(method string) (*http.Response, error) {
		req, err := http.NewRequestWithContext(ctx, method, where.String(), nil)
		if err != nil {
			return nil, err
		}
		return adminclient.Send(req, authorization, adminPatience, security)
	}
	resp, err := send(http.MethodGet)
	if err == nil && resp.StatusCode == http.StatusMethodNotAllowed {
		if err = resp.Body.Close(); err == nil {
			resp, err = send(http.MethodPost)
		}
	}
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	text, err := io.ReadAll(resp.Body)
	if err == nil && (resp.StatusCode != http.StatusOK || adminclient.Failure(text) != "") {
		err = adminclient.Refusal(resp, text, authorization)
	}
	return string(text), err
}
