package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
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

// adminRequest sends a request and returns the status and the body of the answer.
func (a *attacker) adminRequest(method, path, authorization, body string) (status int, answer []byte, err error) {
	r, err := http.NewRequestWithContext(a.ctx, method, "http://"+a.Admin+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	return resp.StatusCode, answer, err
}

// succeeded reports whether an admin command was carried out: its answer is a JSON object without
// an error.
func succeeded(status int, answer []byte) bool {
	var fields map[string]any
	if status != http.StatusOK || json.Unmarshal(answer, &fields) != nil {
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
		if status, _, err = a.adminRequest(http.MethodGet, "/commands/ruok", "", ""); err == nil && status == http.StatusOK {
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
			as := who
			if as == "" {
				as = "nobody"
			}
			status, answer, err := a.adminRequest(http.MethodGet, "/commands/snapshot?streaming=true", who, "")
			if err == nil && status == http.StatusOK && len(answer) > 0 && !bytes.HasPrefix(bytes.TrimSpace(answer), []byte("{")) {
				a.breach("a snapshot for %s", as)
			}
			if status, answer, err := a.adminRequest(http.MethodPost, "/commands/shed_connections", who, `{"percentage": 0}`); err == nil && succeeded(status, answer) {
				a.breach("shed_connections for %s", as)
			}
			if _, _, err := a.adminRequest(http.MethodPost, "/commands/restore", who, "garbage"); err != nil && a.ctx.Err() == nil {
				a.sleep(100 * time.Millisecond)
			}
		}
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			if status, answer, err := a.adminRequest(method, "/commands/reload", "", ""); err == nil && succeeded(status, answer) {
				a.breach("reload for nobody")
			}
		}
		if status, answer, err := a.adminRequest(http.MethodGet, "/commands/stat_reset", "", ""); err == nil && succeeded(status, answer) {
			a.breach("stat_reset by GET for nobody")
		}
		a.sleep(time.Second)
	})
}

func adminSlow(a *attacker) {
	a.mustAnswer()
	a.ready()
	a.each(1000, func(int) {
		nc, err := a.dial(a.Admin)
		if err != nil {
			a.sleep(100 * time.Millisecond)
			return
		}
		defer func() { _ = nc.Close() }() // whatever was sent is sent
		_, err = nc.Write([]byte("GET /commands/stats HTTP/1.1\r\nHost: a\r\nX-Header: "))
		for err == nil && a.ctx.Err() == nil {
			a.sleep(100 * time.Millisecond)
			_, err = nc.Write([]byte("x"))
		}
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
		nc, err := a.dial(a.Admin)
		if err != nil {
			a.sleep(100 * time.Millisecond)
			return
		}
		defer func() { _ = nc.Close() }() // whatever was sent is sent
		if i%2 == 0 {
			// Ends when the connection is closed; runAttack waits.
			a.running.Go(func() { _, _ = io.Copy(io.Discard, nc) })
		}
		for a.ctx.Err() == nil {
			if err := nc.SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
				return
			}
			if _, err := io.WriteString(nc, all.String()); err != nil {
				return
			}
		}
	})
}
