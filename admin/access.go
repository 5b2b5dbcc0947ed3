package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/gozkd/gozkd/audit"
	"github.com/gozkd/gozkd/internal/fair"
	"github.com/gozkd/gozkd/internal/guesses"
	"github.com/gozkd/gozkd/internal/httplocal"
	"github.com/gozkd/gozkd/internal/printable"
	"github.com/gozkd/gozkd/internal/secretfile"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/identity"
)

type access int

const (
	// everybody may read numbers about the server and the members of its ensemble.
	everybody access = iota
	// local commands reveal paths, clients, sessions or the server's machine. They are for callers
	// on this machine and for administrators, or, if Options.Open is set, for everybody.
	local
	// changes are commands such as resets, for administrators or, with Options.Open, for everybody.
	changes
	// administrators may run every command: only they may copy the state or control the server.
	administrators
)

// Bounds on a token in bytes.
const (
	minToken = 16
	maxToken = 4 << 10
)

// ZooKeeper's texts.
var (
	errNoAuth           = errors.New("Auth info is missing for the command") //nolint:staticcheck // what a client is shown
	errNotAuthenticated = errors.New("Not authenticated")                    //nolint:staticcheck // the same
	errNotAuthorized    = errors.New("Not authorized")                       //nolint:staticcheck // the same
)

// admit checks that the caller may run commands with this access.
func (h *handler) admit(r *http.Request, a access) (status int, err error) {
	if a == everybody || a < administrators && h.options.Open || a == local && OnThisMachine(r) {
		return http.StatusOK, nil
	}
	return h.authorize(r)
}

// authorize checks that the request comes from an administrator. The texts and statuses are
// ZooKeeper's, and so is the format of the header: a scheme, one space, and the credentials.
func (h *handler) authorize(r *http.Request) (status int, err error) {
	if h.certified(r) {
		return http.StatusOK, nil
	}
	given := r.Header["Authorization"]
	if len(given) == 0 {
		return http.StatusUnauthorized, errNoAuth
	}
	scheme, credentials, _ := strings.Cut(strings.TrimRight(given[0], " "), " ")
	if strings.Contains(credentials, " ") {
		return http.StatusUnauthorized, errNotAuthenticated
	}
	user, secret, _ := strings.Cut(credentials, ":")
	token := strings.EqualFold(scheme, "bearer")
	if token { // strangers in other networks are not in the way: a token is too long to be guessed by all together
		user, secret = "token in "+fair.Network(guesser(r)), credentials
	}
	if token || scheme == identity.SchemeDigest {
		if len(user) > guesses.MaxText {
			return http.StatusUnauthorized, errNotAuthenticated
		}
		end, wait, ok := h.guesses.Begin(guesser(r), user, secret)
		if !ok {
			return http.StatusTooManyRequests, busyError(wait)
		}
		defer func() { end(status == http.StatusOK) }()
	}
	if token {
		if isToken(h.options.TokenFile, credentials) || OnThisMachine(r) && isToken(h.options.LocalTokenFile, credentials) {
			return http.StatusOK, nil
		}
		return http.StatusUnauthorized, errNotAuthenticated
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = "" // on a socket without ports, no client has an address
	}
	authority := h.server.Identities()
	check := authority.AuthorizeSuper
	if h.options.Open {
		check = authority.Authorize
		if first, _ := httplocal.ForwardedFor(r); h.options.ForwardedFor && first != "" {
			host = first
		}
	}
	switch err := check(scheme, credentials, host); {
	case errors.Is(err, identity.ErrNotAuthenticated):
		return http.StatusUnauthorized, errNotAuthenticated
	case err != nil:
		return http.StatusForbidden, errNotAuthorized
	}
	return http.StatusOK, nil
}

// guesser returns the host whose wrong passwords count together. This machine does not count with
// the callers of a proxy on it.
func guesser(r *http.Request) string {
	if OnThisMachine(r) {
		return "this machine"
	}
	return hostOf(r)
}

// hostOf returns the host of the caller. On a socket without ports, it is the whole address.
func hostOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	return host
}

// busyError says for how long a caller must wait.
type busyError time.Duration

func (e busyError) Error() string {
	return fmt.Sprintf("too many wrong passwords or tokens: try again in %d s", e.seconds())
}

func (e busyError) seconds() int { return int((time.Duration(e) + time.Second - 1) / time.Second) }

func (h *handler) certified(r *http.Request) bool {
	is := h.options.Administrator
	return is != nil && r.TLS != nil && len(r.TLS.VerifiedChains) > 0 && is(r.TLS.PeerCertificates[0])
}

// remedy tells a refused caller how to be authorized.
func (h *handler) remedy(r *http.Request) string {
	text := "this needs an administrator: the superuser (Authorization: digest super:PASSWORD)"
	if h.options.TokenFile != "" {
		text += ", or the token of this server (Authorization: Bearer TOKEN)"
	}
	if h.options.Administrator != nil && r.TLS != nil {
		text += ", or the certificate of an administrator"
	}
	if h.options.LocalTokenFile != "" && OnThisMachine(r) {
		text += ", or, on this machine, Authorization: Bearer with the content of " + h.options.LocalTokenFile
	}
	return text
}

// isToken reports whether the file holds this token. The file is read each time, so that it can be
// replaced at any time. Without a file, no token is right.
func isToken(file, token string) bool {
	if file == "" {
		return false
	}
	text, _, err := secretfile.Read(file, maxToken)
	want := strings.TrimSpace(string(text))
	if err != nil || len(want) < minToken {
		return false
	}
	a, b := sha256.Sum256([]byte(want)), sha256.Sum256([]byte(token)) // of one length, so that no length is revealed
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// OnThisMachine reports whether the request comes from a program on this machine, and not through a
// proxy there, nor from a web page whose host name resolves to this machine (DNS rebinding).
func OnThisMachine(r *http.Request) bool { return httplocal.OnThisMachine(r) }

// maxAuditUser bounds the name of a caller in the audit log, which anybody can fill with names.
const maxAuditUser = 1 << 10

// audit records a command that changes something or reveals the state, with its caller. refused is
// the reason why the caller may not run the command, or nil. Refusals are recorded as often as
// passwords are compared; Count of the next event is the number of the others.
func (h *handler) audit(r *http.Request, command string, refused error) {
	e := audit.Event{
		Operation: audit.Admin, Result: audit.Invoked, IDs: h.callerIDs(r), Client: r.RemoteAddr, TLS: r.TLS != nil, Detail: command,
	}
	if refused != nil {
		unrecorded, ok := h.guesses.Record(guesser(r))
		if !ok {
			return
		}
		e.Count = unrecorded
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
	return append(ids, proto.ID{Scheme: "ip", ID: hostOf(r)})
}
