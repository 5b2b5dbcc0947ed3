package admin

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/gozkd/gozkd/internal/printable"
	"github.com/gozkd/gozkd/server"
)

// check is the result of a health check. The reason is empty if the check passed, and then the note
// has more about it.
type check struct{ name, reason, note string }

// alive checks that a restart would not help: the server has not stopped by itself. A restart does
// not help a server that waits for a leader, or is being stopped.
func (h *handler) alive() []check {
	c := check{name: "running"}
	if err := h.server.Failed(); err != nil {
		c.reason = "it stopped by itself: " + err.Error()
	}
	return []check{c}
}

// ready checks that clients can be sent to the server. A server that refuses growth is ready: it
// serves all other requests, and those who delete something. A server whose archive is closed,
// because a standby was promoted, is ready too: otherwise whoever may write to the archive, also by
// mistake, could take the ensemble out of service.
func (h *handler) ready(r *http.Request) []check {
	st, why := h.server.Status(), h.server.NotServing()
	started, leader, current := check{name: "started"}, check{name: "leader"}, check{name: "current"}
	if why != nil && !errors.Is(why, server.ErrNoLeader) {
		started.reason = printable.Error(why)
	}
	switch {
	case started.reason != "":
		leader.reason, current.reason = started.reason, started.reason
	case st.Standby:
		leader.reason = printable.Error(server.ErrStandby)
		current.reason = leader.reason
	case st.Leader == 0:
		leader.reason = cmp.Or(st.NoLeader, "no leader is known")
		current.reason = leader.reason
	case st.CatchingUp:
		current.reason = "catching up: what was committed when this server found its leader is not applied here yet"
	case why != nil:
		leader.reason = printable.Error(why)
		current.reason = leader.reason
	case !st.Serving:
		current.reason = "what was committed before the leader's time is not applied here yet"
	}
	checks := []check{started, leader, current}
	if h.options.NotReady != nil {
		own := check{name: "program"}
		if err := h.options.NotReady(); err != nil {
			own.reason = err.Error()
		}
		checks = append(checks, own)
	}
	stats := h.server.Facts().Stats()
	for _, c := range []check{
		{name: "growth", note: h.growth(r)},
		{name: "connections", note: stats.Crowd.String()},
		{name: "archive", note: stats.Fenced},
		{name: "membership", note: stats.Outside},
		{name: "certificates", note: stats.Certificates},
	} {
		if c.note != "" {
			checks = append(checks, c)
		}
	}
	return checks
}

// growth returns how near the data are to their limit, with paths if the caller may see paths.
func (h *handler) growth(r *http.Request) string {
	data := h.server.Facts().Stats().Growth
	if _, err := h.admit(r, local); err != nil {
		data.Largest = nil
	}
	return data.String()
}

// health answers as Kubernetes' own servers do: ok with status 200, or the failed checks with 503.
// With ?verbose, all checks are listed. The answer is JSON if the client accepts that.
func (h *handler) health(w http.ResponseWriter, r *http.Request, checks []check) {
	if !allow(w, r, http.MethodGet, http.MethodHead) {
		return
	}
	status, word := http.StatusOK, "ok"
	list := make([]object, 0, len(checks))
	var text strings.Builder
	for _, c := range checks {
		if c.reason != "" {
			status, word = http.StatusServiceUnavailable, "failed"
			list = append(list, object{{"name", c.name}, {"ok", false}, {"reason", c.reason}})
			fmt.Fprintf(&text, "[-]%s failed: %s\n", c.name, c.reason)
			continue
		}
		passed, is := object{{"name", c.name}, {"ok", true}, {"reason", nil}}, "ok"
		if c.note != "" {
			passed, is = append(passed, field{"note", c.note}), "warning: "+c.note
		}
		list = append(list, passed)
		fmt.Fprintf(&text, "[+]%s %s\n", c.name, is)
	}
	w.Header().Set("Cache-Control", "no-store")
	if strings.Contains(r.Header.Get("Accept"), "application/json") {
		writeJSON(w, status, object{{"status", word}, {"checks", list}})
		return
	}
	what := strings.TrimPrefix(r.URL.Path, "/")
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	body := "ok"
	switch {
	case status != http.StatusOK:
		body = text.String() + what + " check failed\n"
	case r.URL.Query().Has("verbose"):
		body = text.String() + what + " check passed\n"
	}
	_, _ = w.Write([]byte(body)) // an error says that the client left
}
