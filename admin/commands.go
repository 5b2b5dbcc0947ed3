package admin

import (
	"cmp"
	"crypto/x509"
	"net/http"
	"slices"
	"time"

	"github.com/gozkd/gozkd/internal/fair"
	"github.com/gozkd/gozkd/internal/guesses"
	"github.com/gozkd/gozkd/server"
)

// command is an admin command. run returns the fields of the answer, except command and error. If
// run returns an error, its text is ZooKeeper's for a command that cannot be run, and the status is
// 200 unless the error is a failedError.
type command struct {
	name    string
	aliases []string
	always  bool // also answered by a server that does not serve clients
	posts   bool // it requires POST, all others require GET
	access  access
	run     func(h *handler, r *http.Request) (object, error)
	streams func(h *handler, w http.ResponseWriter, r *http.Request) // instead of run, if the answer is not an object
	given   func(o *Options) bool                                    // whether the command exists; nil: always
}

// commands are sorted by name. Names and aliases are those of
// org.apache.zookeeper.server.admin.Commands of ZooKeeper 3.9, and of 3.10 for shed_connections.
// ended_sessions, expire_session, hot, reload and transfer_leadership are not in ZooKeeper.
var commands = []command{
	{name: "configuration", aliases: []string{"conf", "config"}, run: facts(configuration)},
	{name: "connection_stat_reset", aliases: []string{"crst"}, access: changes, run: resets((*server.Facts).ResetConnectionStats)},
	{name: "connections", aliases: []string{"cons"}, access: local, run: facts(func(s *server.Facts) object { return connectionLists(s, true) })},
	{name: "dirs", run: facts(dirs)},
	{name: "dump", access: local, run: facts(dump)},
	{name: "ended_sessions", access: local, run: endedSessions},
	{name: "environment", aliases: []string{"env", "envi"}, access: local, always: true, run: facts(environment)},
	{name: "expire_session", access: administrators, posts: true, run: expireSession},
	{name: "get_trace_mask", aliases: []string{"gtmk"}, always: true, run: facts(traceMask)},
	{name: "hash", run: facts(hash)},
	{name: "hot", access: local, run: facts(hot)},
	{name: "initial_configuration", aliases: []string{"icfg"}, access: local, run: initialConfiguration},
	{name: "is_read_only", aliases: []string{"isro"}, run: facts(func(s *server.Facts) object { return object{{"read_only", readOnly(s)}} })},
	{name: "last_snapshot", aliases: []string{"lsnp"}, run: lastSnapshot},
	{name: "leader", aliases: []string{"lead"}, run: leader},
	{name: "monitor", aliases: []string{"mntr"}, run: monitor},
	{name: "observer_connection_stat_reset", aliases: []string{"orst"}, access: changes, run: facts(nothing)},
	{name: "observers", aliases: []string{"obsr"}, run: facts(observers)},
	{name: "reload", access: administrators, always: true, posts: true, run: reload, given: func(o *Options) bool { return o.Reload != nil }},
	{name: "restore", aliases: []string{"rest"}, access: administrators, posts: true, run: restore},
	{name: "peers", run: facts(peers)},
	{name: "ruok", run: facts(nothing)},
	{name: "server_stats", aliases: []string{"srvr"}, run: facts(serverStats)},
	{name: "set_trace_mask", aliases: []string{"stmk"}, access: changes, always: true, run: setTraceMask},
	{name: "shed_connections", aliases: []string{"shed"}, access: administrators, posts: true, run: shed},
	{name: "snapshot", aliases: []string{"snap"}, access: administrators, streams: (*handler).snapshot},
	{name: "stat_reset", aliases: []string{"srst"}, access: changes, run: resets((*server.Facts).ResetStats)},
	{name: "stats", aliases: []string{"stat"}, access: local, run: facts(stats)},
	{name: "system_properties", aliases: []string{"sysp"}, access: local, always: true, run: systemProperties},
	{name: "transfer_leadership", access: administrators, posts: true, run: transferLeadership},
	{name: "voting_view", run: facts(votingView)},
	{name: "watch_summary", aliases: []string{"wchs"}, run: facts(watchSummary)},
	{name: "watches", aliases: []string{"wchc"}, access: local, run: facts(watches)},
	{name: "watches_by_path", aliases: []string{"wchp"}, access: local, run: facts(watchesByPath)},
	{name: "zabstate", always: true, run: facts(zabState)},
}

func (h *handler) find(name string) (command, bool) {
	i := slices.IndexFunc(commands, func(c command) bool { return c.name == name || slices.Contains(c.aliases, name) })
	if i < 0 || !h.has(&commands[i]) {
		return command{}, false
	}
	return commands[i], true
}

func (h *handler) has(c *command) bool { return c.given == nil || c.given(&h.options) }

// nothing answers with no facts: no connections of observers are counted.
func nothing(*server.Facts) object { return nil }

// facts makes a command's run from a function that needs only the server and cannot fail.
func facts(f func(*server.Facts) object) func(*handler, *http.Request) (object, error) {
	return func(h *handler, _ *http.Request) (object, error) { return f(h.server.Facts()), nil }
}

func resets(f func(*server.Facts)) func(*handler, *http.Request) (object, error) {
	return func(h *handler, _ *http.Request) (object, error) { f(h.server.Facts()); return nil, nil }
}

// Options configure the handler of New. Names in parentheses are ZooKeeper's keys.
type Options struct {
	// Snapshot lets administrators copy the state, with session passwords (admin.snapshot.enabled).
	Snapshot bool
	// Shed lets administrators close clients' connections.
	Shed bool

	// TokenFile is a file with a token of at least 16 characters. A caller that sends the token,
	// with Authorization: Bearer TOKEN, is an administrator, as is the superuser. The file is read
	// at each such request. Empty: there is none.
	TokenFile string
	// Administrator reports whether the holder of a certificate is an administrator. It is asked
	// about verified client certificates of HTTPS. nil: no certificate authorizes.
	Administrator func(*x509.Certificate) bool
	// LocalTokenFile is such a file for callers on this machine.
	LocalTokenFile string
	// Open admits callers as ZooKeeper does: everybody may run the commands for callers on this
	// machine and reset counters, and identities with all permissions in the ACL of the root znode,
	// which is open to everybody at first, are administrators too.
	Open bool
	// ForwardedFor: with Open, ACLs of scheme ip see the first address in the header
	// X-Forwarded-For, if there is one. A caller without a proxy can write any address there.
	ForwardedFor bool

	// Interval is for how long after a snapshot the next snapshot is refused
	// (admin.rateLimiterIntervalInMS). Default: 5 minutes. Negative: none is refused.
	Interval time.Duration
	// Reload reads the program's configuration again, and must be safe for concurrent use. Its
	// error is shown. nil: the command reload does not exist.
	Reload func() error
	// InitialConfiguration is the text of the file that the server was configured from. Secrets in
	// the text are not shown. Empty: none.
	InitialConfiguration string
	// Properties are the settings that the program was given as -Dname=value, in any order. The
	// last setting with a name counts. Secrets are not shown.
	Properties []server.Setting
	// NotReady returns the program's own reason against sending more clients, such as a stop, or
	// nil. It must be safe for concurrent use, and may be nil.
	NotReady func() error
}

// New returns the admin commands of s, and its health checks: GET /livez and /readyz. New opens no
// port. To mount the handler under another path, use http.StripPrefix.
//
// Administrators are the superuser, and callers with a token or a certificate of Options. The
// commands connections, dump, ended_sessions, environment, hot, initial_configuration, stats,
// system_properties, watches and watches_by_path are for administrators and callers on this
// machine; the resets, set_trace_mask, expire_session, reload, restore, shed_connections, snapshot
// and transfer_leadership are for administrators.
func New(s *server.Server, o Options) http.Handler {
	o.Interval = cmp.Or(o.Interval, 5*time.Minute)
	h := &handler{server: s, options: o, guesses: guesses.New(time.Now), long: make(chan struct{}, longAnswers)}
	if o.Interval > 0 {
		h.taken = fair.NewRate(o.Interval, 1, 1)
	}
	return h
}
