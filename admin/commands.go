package admin

import (
	"net/http"
	"slices"

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
