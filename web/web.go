package web

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/internal/history"
	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/internal/printable"
	"github.com/gozkd/gozkd/internal/sloglog"
	"github.com/gozkd/gozkd/internal/version"
	"github.com/gozkd/gozkd/internal/webrole"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/web/internal/access"
	"github.com/gozkd/gozkd/web/internal/answer"
	"github.com/gozkd/gozkd/web/internal/call"
	"github.com/gozkd/gozkd/web/internal/explore"
	"github.com/gozkd/gozkd/web/internal/restv1"
	"github.com/gozkd/gozkd/web/internal/restv2"
	"github.com/gozkd/gozkd/web/static"
)

// Role is a set of permissions. A role includes the lower ones.
type Role = webrole.Role

// The roles.
const (
	None  = webrole.None
	Read  = webrole.Read
	Write = webrole.Write
	Admin = webrole.Admin // ends sessions, sees addresses and sessions of others
)

// History is an archive with earlier states of znodes.
type History = history.Archive

// Options configure a Handler.
type Options struct {
	// Anonymous is the role of callers on this machine without a login.
	Anonymous Role
	// Roles are the roles of identities, such as sasl:alice. The superuser has the role Admin.
	Roles map[string]Role
	// Administrator reports whether a verified certificate gives Admin. Default: the superuser's.
	Administrator func(*x509.Certificate) bool
	// Hosts are names of this server that callers may use beside addresses, localhost and the
	// machine's name; callers of other machines may also use any name without a dot.
	Hosts []string
	// ProxyHeader is a header in which the proxies at these addresses name the SASL user of a
	// request. Proxies must remove the header from requests. Empty: no proxy is trusted.
	ProxyHeader string
	Proxies     []netip.Prefix
	// MaxBody bounds the body of a request in bytes. Default: server.Config.MaxBuffer.
	MaxBody int64
	// Rate bounds the requests of a caller per second; twice as many may come at once. Callers on
	// this machine may send ten times as many. Default: 1,000.
	Rate float64
	// Ask asks another member a four-letter word at its address for clients, for the view of the
	// ensemble. It must bound the answer. Default: the view shows what this server knows.
	Ask func(ctx context.Context, address, word string) (string, error)
	// AskPort is the port for clients of a member whose server line has none. Default: unknown, so
	// that the member is not asked.
	AskPort int
	// History has earlier states of znodes. Default: none.
	History History
	// Logger gets log lines. Default: none.
	Logger hclog.Logger
	// Slog gets the log lines instead of Logger.
	Slog *slog.Logger
}

// Paths are the patterns under which a program should mount a Handler.
var Paths = []string{"/ui/", "/znodes/", "/sessions/", "/sessions/v1", "/identity/v2", restv2.OpenAPIPath}

// Handler serves everything of this package. Close must be called before the server is closed.
type Handler struct {
	server   *server.Server
	gate     *access.Gate
	pool     *call.Pool
	sessions *restv1.Sessions
	bounds   bounds
	counts   counts
	handler  http.Handler
	closing  context.Context // ends with Close, and with it all requests
	close    context.CancelFunc
	// unregister ends what the explorer does by itself.
	unregister func()
}

// New returns a Handler for s, which need not be started yet.
func New(s *server.Server, o Options) *Handler {
	o.MaxBody = cmp.Or(o.MaxBody, int64(s.MaxBuffer()))
	o.Rate = cmp.Or(o.Rate, defaultRate)
	h := &Handler{server: s, bounds: newBounds(o.Rate), counts: counts{byRoute: make(map[Route]int64)}}
	h.closing, h.close = context.WithCancel(context.Background())
	dial := func(ctx context.Context, who *access.Caller) (net.Conn, error) { return s.DialAs(ctx, caller(who)) }
	h.pool = call.NewPool(call.PoolConfig{
		Dial: dial, Missed: h.missed, NotServing: h.notServing, MaxRequest: s.MaxBuffer(),
		MaxBody: o.MaxBody, History: o.History, Logger: sloglog.Choose(o.Slog, o.Logger),
	})
	h.gate = access.New(access.Config{
		Realm: s.Identities(), Audit: s.Audit, Now: time.Now,
		Anonymous: o.Anonymous, Roles: o.Roles, Administrator: o.Administrator,
		Hosts: o.Hosts, ProxyHeader: o.ProxyHeader, Proxies: o.Proxies,
	})
	api := http.NewServeMux()
	h.sessions = restv1.NewSessions(h.pool)
	api.Handle("/znodes/v1/", &restv1.Znodes{Sessions: h.sessions})
	api.Handle("/sessions/v1", h.sessions)
	api.Handle("/sessions/v1/", h.sessions)
	api.Handle("/znodes/v2/", &restv2.Handler{Kind: h.kind, Streams: h.bounds.streams, Session: h.sessions.Get})
	api.HandleFunc("GET /identity/v2", func(w http.ResponseWriter, r *http.Request) {
		answer.JSON(w, http.StatusOK, h.whoIs(&call.Of(r).Caller))
	})
	h.unregister = explore.Register(api, s, o.Ask, o.AskPort)
	api.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		answer.Fail(w, answer.Errorf(http.StatusNotFound, "nothing is at %s", r.URL.Path))
	})
	mux := http.NewServeMux()
	mux.Handle("/", h.identified(api))
	mux.HandleFunc("GET "+restv2.OpenAPIPath, restv2.ServeOpenAPI)
	mux.Handle("/ui/", static.Handler("/ui/"))
	mux.Handle("/ui/api/", h.identified(api))
	mux.HandleFunc("POST /ui/api/login", h.login)
	mux.HandleFunc("POST /ui/api/logout", func(w http.ResponseWriter, r *http.Request) {
		h.gate.Logout(w, r)
		w.WriteHeader(http.StatusNoContent)
	})
	h.handler = h.counts.counting(h.gate.Protect(mux))
	return h
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.handler.ServeHTTP(w, r) }

// Close ends requests and the sessions of callers, and returns when they are closed. Later requests
// are refused. A nil Handler may be closed.
func (h *Handler) Close() {
	if h != nil {
		h.close()
		h.unregister()
		h.sessions.Close()
		h.pool.Close()
	}
}

// EndLogins ends all logins, for a program that has changed who may log in, or with which password.
// It does nothing to a nil Handler.
func (h *Handler) EndLogins() {
	if h != nil {
		h.gate.EndLogins()
	}
}

func caller(who *access.Caller) server.Caller {
	return server.Caller{Address: who.Host, IDs: who.IDs, Origin: access.Origin, TLS: who.TLS, Unsampled: who.Page}
}

// missed is for call.PoolConfig.
func (h *Handler) missed(who *access.Caller, q *proto.SetWatchesRequest, f server.MissedEvent) (proto.Zxid, bool) {
	return h.server.Missed(caller(who), q, f)
}

func (h *Handler) notServing() error {
	if err := h.server.NotServing(); err != nil {
		return answer.Errorf(http.StatusServiceUnavailable, "%s", printable.Error(err))
	}
	return nil
}

// kind is for restv2.Handler.
func (h *Handler) kind(path string, czxid proto.Zxid) (kind string, ttlMs int64) {
	h.server.Walk(path, func(z server.Znode) bool {
		switch {
		case z.Stat.Czxid != czxid:
		case z.Mode == proto.ModeContainer:
			kind = "container"
		case z.Mode == proto.ModePersistentTTL:
			kind, ttlMs = "ttl", z.TTLMs
		}
		return false
	})
	return kind, ttlMs
}

func (h *Handler) whoIs(c *access.Caller) *restv2.Who {
	shown, st := *c, h.server.Status()
	shown.IDs = proto.ShownIDs(c.IDs)
	return restv2.WhoIs(restv2.ServerInfo{ID: memberid.Number(st.Member), Version: version.Get().String(), Mode: st.Mode},
		h.gate, &shown)
}

// identified calls next with the caller of a request.
func (h *Handler) identified(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, unknown := h.gate.Identify(r)
		leave, problem := h.bounds.admit(r, &who)
		if problem != nil {
			answer.Fail(w, problem)
			return
		}
		defer leave()
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(h.closing, cancel)()
		r, end := call.Begin(r.WithContext(ctx), who, h.gate, h.pool)
		defer end()
		if unknown != nil && (r.URL.Path != "/identity/v2" || r.Header.Get("Authorization") != "") {
			if r.Method != http.MethodGet && r.Method != http.MethodHead {
				call.Of(r).Audit(r.Method+" "+r.URL.Path, proto.ErrNoAuth)
			}
			call.Fail(w, unknown)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// ParseRoles parses a list of ROLE=SCHEME:ID, separated by semicolons. A semicolon that is a part
// of an ID has a backslash before it.
func ParseRoles(list string) (map[string]Role, error) { return webrole.Parse(list) }

const maxLoginBody = 8 << 10

func (h *Handler) login(w http.ResponseWriter, r *http.Request) {
	var given struct {
		Scheme   string `json:"scheme"` // digest, sasl, or "" for both
		User     string `json:"user"`
		Password string `json:"password"`
	}
	b, err := io.ReadAll(call.Body(w, r, maxLoginBody))
	if err == nil && json.Unmarshal(b, &given) != nil {
		err = answer.Bad("the body must be {\"scheme\", \"user\", \"password\"}")
	}
	var who access.Caller
	if err == nil {
		who, err = h.gate.Login(w, r, given.Scheme, given.User, given.Password)
	}
	if err != nil {
		call.Fail(w, err)
		return
	}
	answer.JSON(w, http.StatusOK, h.whoIs(&who))
}
