package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/facts"
)

// why runs gozkd why.
func why(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	status = run("gozkd", append([]string{"why"}, args...), outside(&out, &errs))
	return status, out.String(), errs.String()
}

// The story is put together from what all members know, and found by session, address and path. A
// member that is not asked, or does not answer, is named.
func TestWhy_Ensemble(t *testing.T) {
	cluster, urls, secret := adminEndpoints(t, 100)
	leader, err := cluster.Leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at, err := cluster.Member(leader.ID()%3 + 1)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.Connect(t.Context(), client.Config{Servers: []string{at.Address()}, Dial: cluster.Dial})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // its session has ended
	if _, _, err := c.Create(t.Context(), "/e", nil, client.CreateOptions{Ephemeral: true}); err != nil {
		t.Fatal(err)
	}
	session := proto.SessionID(c.Session().ID).String()
	all := strings.Join([]string{urls[1], urls[2], urls[3]}, ",")
	if status, _, errs := why(t, "--url", all, session); status != 1 || !strings.Contains(errs, "no server that answered knows of an ended session that fits session "+session) {
		t.Errorf("a session that lives: status %d, %s", status, errs)
	}
	if err := leader.Server().ExpireSession(t.Context(), int64(c.Session().ID)); err != nil {
		t.Fatal(err)
	}
	for _, m := range cluster.Members() {
		if err := m.Server().CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	_, out, errs := why(t, "--url", all, "--output", "json", session)
	var stories []facts.EndedSession
	if err := json.Unmarshal([]byte(out), &stories); err != nil {
		t.Fatal(err, out, errs)
	}
	stories = slices.DeleteFunc(stories, func(e facts.EndedSession) bool { return e.How == facts.Over }) // the client may have asked since
	if len(stories) != 1 || stories[0].Cause != facts.Administrator ||
		len(stories[0].Tellers) != 3 || stories[0].Client == nil || stories[0].Server != at.ID() {
		t.Fatal(out, errs)
	}
	address := stories[0].Client.Address
	host := address[:strings.LastIndexByte(address, ':')]
	ended := fmt.Sprintf("an administrator, or the embedding program, ended it at server %d\n  deleted /e\n", leader.ID())
	unknown := fmt.Sprintf(": server %d decided that: ask it for the reason, unless it has restarted since\n", leader.ID())
	nobody := "http://127.0.0.1:1"
	for _, q := range []struct {
		args   []string
		status int
		says   string // on standard output
		errs   []string
	}{
		{[]string{"--url", all, session}, 0, ended, nil},
		{[]string{"--url", all, strings.ToUpper(session[2:])}, 0, ended, nil},
		{[]string{"--url", all, "/e"}, 0, ended, nil},
		{[]string{"--url", all, address}, 0, ended, nil},
		{[]string{"--url", all, host}, 0, ended, nil},
		{[]string{"--url", all + "," + urls[1], "/e"}, 0, ended, nil},
		{[]string{"--url", urls[leader.ID()] + "," + nobody, "/e"}, 0, ended, []string{nobody, "1 of 2 servers told"}},
		{[]string{"--url", urls[at.ID()] + "," + urls[at.ID()], "/e"}, 0, unknown, nil},
		{[]string{"--url", urls[leader.ID()], "--timeout", "1s", "/e"}, 2, "", []string{"-timeout"}},
		{[]string{"--url", all, "--auth-file", secret, "/f"}, 1, "", []string{"no server that answered knows of an ended session that fits path /f"}},
		{[]string{"--url", nobody, "/e"}, 1, "", []string{"connection refused; use --url to name the admin endpoint"}},
		{[]string{"--url", nobody + "," + nobody + "/x", "/e"}, 1, "", []string{nobody, nobody + "/x", "no server told which sessions ended: "}},
		{[]string{"--url", "ftp://x", "/e"}, 2, "", []string{"allowed: a URL"}},
		{[]string{"--server", "zk1:2181", "/e"}, 2, "", []string{`why: the admin endpoint is "zk1:2181"; allowed: a URL`, "not that of clients"}},
		{[]string{"--url", "ftp://me:secret@zk1", "/e"}, 2, "", []string{`why: the admin endpoint is "(hidden)"; allowed: a URL`}},
		{[]string{"--url", all}, 2, "", []string{"name one session, address or path"}},
		{[]string{"--url", all, "--limit", "0", "/e"}, 2, "", []string{"--limit must be 1 or more"}},
	} {
		status, out, errs := why(t, q.args...)
		if status != q.status || !strings.Contains(out, q.says) || (q.errs == nil) != (errs == "") {
			t.Errorf("%q: status %d\n%s%s", q.args, status, out, errs)
		}
		for _, part := range q.errs {
			if !strings.Contains(errs, part) || q.status != 2 && strings.Count(errs, "\n") > len(q.errs) {
				t.Errorf("%q: the errors do not have %q, or more than a line for each: %s", q.args, part, errs)
			}
		}
	}
}

// With one endpoint, the hosts of the other members are asked at its port. If that is not where
// their endpoints are, the errors say what to do. A server without a quorum is not called silent.
func TestWhy_Members(t *testing.T) {
	cluster, urls, _ := adminEndpoints(t, 0)
	port := urls[1][strings.LastIndexByte(urls[1], ':'):]
	oneHost := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"peers": [{"address": "localhost:2888"}, {"address": "127.0.0.2:2888"},
			{"address": "m2.invalid:2888"}]}`) // the client notices
	}))
	t.Cleanup(oneHost.Close)
	expect := func(endpoint string, lines int, parts ...string) {
		t.Helper()
		status, _, errs := why(t, "--url", endpoint, "/e")
		missing := slices.DeleteFunc(parts, func(part string) bool { return strings.Contains(errs, part) })
		if status != 1 || len(missing) > 0 || strings.Count(errs, "\n") != lines {
			t.Errorf("status %d, want %d lines with %q:\n%s", status, lines, missing, errs)
		}
	}
	expect(urls[1], 4, "http://m2"+port, "http://m3"+port, "1 of 3 servers told",
		"--url takes the admin endpoints of all members", "no server that answered knows")
	expect(oneHost.URL, 4, "127.0.0.2", "m2.invalid", "1 of 4 servers told", "no server that answered knows")
	m, err := cluster.Member(1)
	if err == nil {
		err = m.Partition()
	}
	if err != nil {
		t.Fatal(err)
	}
	for late := watchdog.Context(t, time.Minute); !strings.Contains(fmt.Sprint(m.Server().NotServing()), "no leader"); time.Sleep(10 * time.Millisecond) {
		if late.Err() != nil {
			t.Fatal("it still serves without a quorum")
		}
	}
	const refuses = "is not currently serving requests: no leader, which needs a majority of the voters [1 2 3]; this server is connected to ["
	expect(urls[1], 1, refuses)
	expect(urls[1]+","+urls[1], 3, refuses, "no server told which sessions ended")
	_, _, errs := adminCommand(t, "--url", urls[1], "stat")
	if !strings.Contains(errs, refuses) || strings.Count(errs, "\n") != 1 {
		t.Error(errs)
	}
}
