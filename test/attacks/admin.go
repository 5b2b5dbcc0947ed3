package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/internal/testkit/rawclient"
)

// adminAttacks use the HTTP port.
func adminAttacks() []*attack {
	keys := map[string]string{"admin.rateLimiterIntervalInMS": "0"}
	return []*attack{
		{name: "admin-secrets", what: "snapshot, restore, reload, reset without authorization", admin: true, keys: keys, run: adminSecrets},
		{name: "admin-slow", what: "a header byte every 100 ms, 1,000 HTTP connections", admin: true, run: adminSlow},
		{name: "admin-flood", what: "all admin commands, 100 connections, half unread", admin: true, run: adminFlood},
	}
}

// request sends a request to the HTTP port, with these names and values in its header, and returns
// the status and the body of the answer. A header without a value is left out.
func (a *attacker) request(method, path string, body []byte, headers ...string) (int, []byte, error) {
	r, err := http.NewRequestWithContext(a.ctx, method, "http://"+a.Admin+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] != "" {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	return resp.StatusCode, answer, err
}

// succeeds sends a request and reports whether the admin command was carried out: its answer is a
// JSON object without an error.
func (a *attacker) succeeds(method, path, authorization, body string) bool {
	status, answer, err := a.request(method, path, []byte(body), "Authorization", authorization)
	var fields map[string]any
	if err != nil || status != http.StatusOK || json.Unmarshal(answer, &fields) != nil {
		return false
	}
	e, there := fields["error"]
	return there && e == nil
}

// mustAnswer ends an attack on an admin server that does not answer.
func (a *attacker) mustAnswer() {
	var err error
	for range 50 {
		var status int
		if status, _, err = a.request(http.MethodGet, "/commands/ruok", nil); err == nil && status == http.StatusOK {
			return
		}
		a.sleep(100 * time.Millisecond)
	}
	must.Failf("the admin server does not answer: %w", err)
}

func adminSecrets(a *attacker) {
	a.mustAnswer()
	a.ready()
	a.each(1, func(int) {
		for _, who := range []string{"digest a:b", "ip", "world anyone", ""} {
			as := cmp.Or(who, "nobody")
			status, answer, err := a.request(http.MethodGet, "/commands/snapshot?streaming=true", nil, "Authorization", who)
			if err == nil && status == http.StatusOK && len(answer) > 0 && !bytes.HasPrefix(bytes.TrimSpace(answer), []byte("{")) {
				a.breach("a snapshot for %s", as)
			}
			if a.succeeds(http.MethodPost, "/commands/shed_connections", who, `{"percentage": 0}`) {
				a.breach("shed_connections for %s", as)
			}
			if _, _, err := a.request(http.MethodPost, "/commands/restore", []byte("garbage"), "Authorization", who); err != nil && a.ctx.Err() == nil {
				a.sleep(100 * time.Millisecond)
			}
		}
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			if a.succeeds(method, "/commands/reload", "", "") {
				a.breach("reload for nobody")
			}
		}
		if a.succeeds(http.MethodGet, "/commands/stat_reset", "", "") {
			a.breach("stat_reset by GET for nobody")
		}
		a.sleep(time.Second)
	})
}

func adminSlow(a *attacker) {
	a.mustAnswer()
	a.ready()
	a.each(1000, func(int) {
		a.withConn(a.Admin, retry, func(nc *net.TCPConn) {
			_, err := nc.Write([]byte("GET /commands/stats HTTP/1.1\r\nHost: a\r\nX-Header: "))
			for err == nil && a.ctx.Err() == nil {
				a.sleep(100 * time.Millisecond)
				_, err = nc.Write([]byte("x"))
			}
		})
	})
}

func adminFlood(a *attacker) {
	commands := strings.Fields("stats connections dump hash monitor watches watches_by_path watch_summary configuration environment" +
		" dirs leader last_snapshot voting_view zabstate nonexistent")
	var all strings.Builder
	for _, c := range commands {
		fmt.Fprintf(&all, "GET /commands/%s HTTP/1.1\r\nHost: a\r\n\r\n", c)
	}
	a.mustAnswer()
	a.ready()
	a.each(100, func(i int) {
		a.withConn(a.Admin, retry, func(nc *net.TCPConn) {
			if i%2 == 0 {
				// Ends when the connection is closed; runAttack waits.
				a.running.Go(func() { _, _ = io.Copy(io.Discard, nc) })
			}
			for c := rawclient.New(nc); c.Write([]byte(all.String()), time.Minute) == nil; {
			}
		})
	})
}
