package admin

import (
	"net"
	"net/http"
	"strings"

	"github.com/gozkd/gozkd/audit"
	"github.com/gozkd/gozkd/proto"
)

// audit records a command that changes something or reveals the state, and who asked for it. refused
// is why the caller may not run it, or nil.
func (h *handler) audit(r *http.Request, command string, refused error) {
	e := audit.Event{
		Operation: audit.Admin, Result: audit.Invoked, IDs: callerIDs(r), Client: r.RemoteAddr, TLS: r.TLS != nil, Detail: command,
	}
	if refused != nil {
		e.Result, e.Err = audit.Failure, proto.ErrNoAuth
	}
	h.server.Audit(e)
}

// callerIDs returns the names under which a request comes, whether they are proved or not, without
// its credentials.
func callerIDs(r *http.Request) (ids []proto.ID) {
	scheme, credentials, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	switch user, _, ok := strings.Cut(credentials, ":"); {
	case strings.EqualFold(scheme, "bearer"):
		ids = append(ids, proto.ID{Scheme: "token"})
	case scheme == "digest" && ok: // without a colon it may be a password
		ids = append(ids, proto.ID{Scheme: scheme, ID: user})
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	return append(ids, proto.ID{Scheme: "ip", ID: host})
}
