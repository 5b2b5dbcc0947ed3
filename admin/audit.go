package admin

import (
	"net"
	"net/http"
	"strings"

	"github.com/gozkd/gozkd/audit"
	"github.com/gozkd/gozkd/internal/printable"
	"github.com/gozkd/gozkd/proto"
)

// maxAuditUser bounds the name of a caller in the audit log, which anybody can fill with names.
const maxAuditUser = 1 << 10

// audit records a command that changes something or reveals the state, with its caller. refused is
// the reason why the caller may not run the command, or nil.
func (h *handler) audit(r *http.Request, command string, refused error) {
	e := audit.Event{
		Operation: audit.Admin, Result: audit.Invoked, IDs: h.callerIDs(r), Client: r.RemoteAddr, TLS: r.TLS != nil, Detail: command,
	}
	if refused != nil {
		e.Result, e.Err = audit.Failure, proto.ErrNoAuth
	}
	h.server.Audit(e)
}

// callerIDs returns the names under which a request comes, without its credentials. That of a
// certificate is proved, the others may not be.
func (h *handler) callerIDs(r *http.Request) (ids []proto.ID) {
	scheme, credentials, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	switch {
	case strings.EqualFold(scheme, "bearer"):
		ids = append(ids, proto.ID{Scheme: "token"})
	case scheme == "digest" && strings.Contains(credentials, ":"): // without a colon it may be a password
		user := proto.ID{Scheme: scheme, ID: credentials}.User()
		ids = append(ids, proto.ID{Scheme: scheme, ID: strings.Clone(printable.Shortened(user, maxAuditUser))})
	}
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		// An error says that the certificate names nobody.
		proved, _ := h.server.Identities().IdentifyCertificate(r.TLS.PeerCertificates[0])
		ids = append(ids, proved...)
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	return append(ids, proto.ID{Scheme: "ip", ID: host})
}
