package admin

import (
	"net/http"
	"slices"

	"github.com/gozkd/gozkd/server"
)

// command is one of the commands. run returns what its answer has beside the keys command and error; an error of it is ZooKeeper's text
// for a command that can't be run.
type command struct {
	name    string
	aliases []string
	always  bool // it is answered by a server that does not serve, too
	run     func(s *server.Server, r *http.Request) (object, error)
}

// commands are sorted by name. Names and aliases: org.apache.zookeeper.server.admin.Commands of ZooKeeper 3.9.
var commands = []command{
	{name: "configuration", aliases: []string{"conf", "config"}, run: facts(configuration)},
	{name: "connection_stat_reset", aliases: []string{"crst"}, run: facts(resetConnectionStats)},
	{name: "connections", aliases: []string{"cons"}, run: facts(connections)},
	{name: "dirs", run: facts(dirs)},
	{name: "dump", run: facts(dump)},
	{name: "environment", aliases: []string{"env", "envi"}, always: true, run: facts(environment)},
	{name: "get_trace_mask", aliases: []string{"gtmk"}, always: true, run: facts(traceMask)},
	{name: "hash", run: facts(hash)},
	{name: "is_read_only", aliases: []string{"isro"}, run: facts(isReadOnly)},
	{name: "leader", aliases: []string{"lead"}, run: leader},
	{name: "monitor", aliases: []string{"mntr"}, run: facts(monitor)},
	{name: "observers", aliases: []string{"obsr"}, run: facts(observers)},
	{name: "ruok", run: facts(ruok)},
	{name: "server_stats", aliases: []string{"srvr"}, run: facts(serverStats)},
	{name: "set_trace_mask", aliases: []string{"stmk"}, always: true, run: setTraceMask},
	{name: "stat_reset", aliases: []string{"srst"}, run: facts(resetStats)},
	{name: "stats", aliases: []string{"stat"}, run: facts(stats)},
	{name: "voting_view", run: facts(votingView)},
	{name: "watch_summary", aliases: []string{"wchs"}, run: facts(watchSummary)},
	{name: "watches", aliases: []string{"wchc"}, run: facts(watches)},
	{name: "watches_by_path", aliases: []string{"wchp"}, run: facts(watchesByPath)},
	{name: "zabstate", always: true, run: facts(zabState)},
}

// find returns the command of a name or alias.
func find(name string) (command, bool) {
	i := slices.IndexFunc(commands, func(c command) bool { return c.name == name || slices.Contains(c.aliases, name) })
	if i < 0 {
		return command{}, false
	}
	return commands[i], true
}

// facts makes a command's run of a function that needs the server alone and can't fail.
func facts(f func(*server.Server) object) func(*server.Server, *http.Request) (object, error) {
	return func(s *server.Server, _ *http.Request) (object, error) { return f(s), nil }
}
