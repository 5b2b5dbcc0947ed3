package admin

import (
	"net/http"
	"slices"
	"time"

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
	admins  bool // it requires all permissions on the root znode
	run     func(h *handler, r *http.Request) (object, error)
	streams func(h *handler, w http.ResponseWriter, r *http.Request) // instead of run, if the answer is not an object
	given   func(o *Options) bool                                    // whether the command exists; nil: always
}

// commands are sorted by name. Names and aliases are those of
// org.apache.zookeeper.server.admin.Commands of ZooKeeper 3.9, and of 3.10 for shed_connections.
// hot and reload are not in ZooKeeper.
var commands = []command{
	{name: "configuration", aliases: []string{"conf", "config"}, run: facts(configuration)},
	{name: "connection_stat_reset", aliases: []string{"crst"}, run: facts(resetConnectionStats)},
	{name: "connections", aliases: []string{"cons"}, run: facts(connections)},
	{name: "dirs", run: facts(dirs)},
	{name: "dump", run: facts(dump)},
	{name: "environment", aliases: []string{"env", "envi"}, always: true, run: facts(environment)},
	{name: "get_trace_mask", aliases: []string{"gtmk"}, always: true, run: facts(traceMask)},
	{name: "hash", run: facts(hash)},
	{name: "hot", run: facts(hot)},
	{name: "initial_configuration", aliases: []string{"icfg"}, run: initialConfiguration},
	{name: "is_read_only", aliases: []string{"isro"}, run: facts(isReadOnly)},
	{name: "last_snapshot", aliases: []string{"lsnp"}, run: facts(lastSnapshot)},
	{name: "leader", aliases: []string{"lead"}, run: leader},
	{name: "monitor", aliases: []string{"mntr"}, run: facts(monitor)},
	{name: "observer_connection_stat_reset", aliases: []string{"orst"}, run: facts(resetObserverStats)},
	{name: "observers", aliases: []string{"obsr"}, run: facts(observers)},
	{name: "reload", always: true, posts: true, run: reload, given: func(o *Options) bool { return o.Reload != nil }},
	{name: "restore", aliases: []string{"rest"}, posts: true, admins: true, run: restore},
	{name: "ruok", run: facts(ruok)},
	{name: "server_stats", aliases: []string{"srvr"}, run: facts(serverStats)},
	{name: "set_trace_mask", aliases: []string{"stmk"}, always: true, run: setTraceMask},
	{name: "shed_connections", aliases: []string{"shed"}, posts: true, admins: true, run: shed},
	{name: "snapshot", aliases: []string{"snap"}, admins: true, streams: (*handler).snapshot},
	{name: "stat_reset", aliases: []string{"srst"}, run: facts(resetStats)},
	{name: "stats", aliases: []string{"stat"}, run: facts(stats)},
	{name: "system_properties", aliases: []string{"sysp"}, always: true, run: systemProperties},
	{name: "voting_view", run: facts(votingView)},
	{name: "watch_summary", aliases: []string{"wchs"}, run: facts(watchSummary)},
	{name: "watches", aliases: []string{"wchc"}, run: facts(watches)},
	{name: "watches_by_path", aliases: []string{"wchp"}, run: facts(watchesByPath)},
	{name: "zabstate", always: true, run: facts(zabState)},
}

// find returns the command with a name or alias.
func (h *handler) find(name string) (command, bool) {
	i := slices.IndexFunc(commands, func(c command) bool { return c.name == name || slices.Contains(c.aliases, name) })
	if i < 0 || !h.has(&commands[i]) {
		return command{}, false
	}
	return commands[i], true
}

func (h *handler) has(c *command) bool { return c.given == nil || c.given(&h.options) }

// facts makes a command's run from a function that needs only the server and cannot fail.
func facts(f func(*server.Server) object) func(*handler, *http.Request) (object, error) {
	return func(h *handler, _ *http.Request) (object, error) { return f(h.server), nil }
}

// Options configure the handler of New. Names in parentheses are ZooKeeper's keys.
type Options struct {
	// Snapshot lets administrators copy the whole state (admin.snapshot.enabled). An administrator
	// is a client with all permissions on the root znode, which is everybody until its ACL is
	// changed.
	Snapshot bool
	// Shed lets administrators close clients' connections.
	Shed bool
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
	// NotReady returns the program's own reason why no more clients should be sent to the server,
	// for example that it is about to stop, or nil. NotReady must be safe for concurrent use, and
	// may be nil.
	NotReady func() error
}

// New returns the admin commands of s, and its health checks: GET /livez and /readyz. New opens no
// port. To mount the handler under another path, use http.StripPrefix.
//
// The commands snapshot and shed_connections require all permissions on the root znode, with a
// header such as Authorization: digest user:password. There is no other authentication.
func New(s *server.Server, o Options) http.Handler {
	if o.Interval == 0 {
		o.Interval = 5 * time.Minute
	}
	return &handler{server: s, options: o}
}
