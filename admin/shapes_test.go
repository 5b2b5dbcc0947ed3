package admin_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/server"
)

// left lists keys of ZooKeeper's answers, or prefixes of such keys, that ours do not have;
// docs/reference/monitoring.md says why.
var left = map[string][]string{
	"server_stats": leftOfStats,
	"stats":        leftOfStats,
	"hash":         {"digests[].digest_version"},
	"observers": {
		"observers[].remote_socket_address", "observers[].established", "observers[].queued_packets", "observers[].queued_packets_size",
		"observers[].packets_received", "observers[].packets_sent", "observers[].requests", "observers[].last_zxid",
	},
	"zabstate": {
		"quorum_address.wildcard_addresses", "quorum_address.reachable_", "quorum_address.all_reachable_addresses",
		"election_address.wildcard_addresses", "election_address.reachable_", "election_address.all_reachable_addresses",
	},
}

var leftOfStats = []string{
	"server_stats.client_response_stats.", "client_response.", "server_stats.provider_null",
}

// shape flattens an answer to paths of keys and the types of their values. Keys that are ids, times
// or paths are "*", as in the recording. Of a list, the first element counts.
func shape(into map[string]string, at string, v any) map[string]string {
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			into[at] = "empty object"
		}
		for key, is := range v {
			if strings.ContainsAny(key[:1], "0123456789/") {
				key = "*"
			}
			shape(into, strings.TrimPrefix(at+"."+key, "."), is)
		}
	case []any:
		if len(v) == 0 {
			into[at] = "empty list"
		}
		for _, is := range v[:min(1, len(v))] {
			shape(into, at+"[]", is)
		}
	case string:
		into[at] = "string"
	case json.Number:
		into[at] = "number"
	case bool:
		into[at] = "bool"
	case nil:
		into[at] = "null"
	}
	return into
}

// recorded returns the recording of ZooKeeper by role and command, each answer in the form of
// shape.
func recorded(t *testing.T) map[string]map[string]map[string]string {
	t.Helper()
	b, err := os.ReadFile("testdata/zookeeper-3.9.5.json")
	if err != nil {
		t.Fatal(err)
	}
	var file map[string]map[string]any
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	all := make(map[string]map[string]map[string]string)
	for role, commands := range file {
		all[role] = make(map[string]map[string]string)
		for command, answer := range commands {
			// In the recording the type stands as a text in the place of the value.
			flat := make(map[string]string)
			var walk func(at string, v any)
			walk = func(at string, v any) {
				switch v := v.(type) {
				case map[string]any:
					if len(v) == 0 {
						flat[at] = "empty object"
					}
					for key, is := range v {
						walk(strings.TrimPrefix(at+"."+key, "."), is)
					}
				case []any:
					if len(v) == 0 {
						flat[at] = "empty list"
					}
					for _, is := range v {
						walk(at+"[]", is)
					}
				case string:
					flat[at] = v
				}
			}
			walk("", answer)
			all[role][command] = flat
		}
	}
	return all
}

// Every command has exactly ZooKeeper's keys, with values of the same types, on each kind of
// server.
func TestCommands_Shapes(t *testing.T) {
	withThree(t, func(t *testing.T, servers map[string]*server.Server) {
		servers["standalone"] = start(t, server.Config{Dir: t.TempDir(), InProcess: true})
		for _, s := range servers {
			use(t, s)
		}
		for role, commands := range recorded(t) {
			if len(commands) == 0 || servers[role] == nil {
				t.Fatalf("%d answers recorded, server %v", len(commands), servers[role])
			}
			for command, want := range commands {
				status, answer := ask(t, servers[role], command)
				if status != 200 || answer["command"] != command {
					t.Errorf("%s on a %s: status %d, command %v", command, role, status, answer["command"])
				}
				switch command {
				case "system_properties": // theirs are a JVM's
					want = map[string]string{"command": "string", "error": "null"}
				case "initial_configuration": // this server was configured from no file
					want["initial_configuration"] = "null"
				}
				if command == "monitor" {
					compareMonitor(t, role, shape(map[string]string{}, "", answer), want)
					continue
				}
				compare(t, role+": "+command, shape(map[string]string{}, "", answer), want, left[command])
			}
		}
	})
}

func compare(t *testing.T, what string, got, want map[string]string, left []string) {
	t.Helper()
	isLeft := func(key string) bool {
		return slices.ContainsFunc(left, func(l string) bool { return strings.HasPrefix(key, l) })
	}
	for key, typ := range want {
		if has, ok := got[key]; ok && has != typ {
			t.Errorf("%s: %s is a %s, want a %s", what, key, has, typ)
		} else if !ok && !isLeft(key) {
			t.Errorf("%s: %s is missing", what, key)
		}
	}
	for key := range got {
		if _, ok := want[key]; !ok || isLeft(key) {
			t.Errorf("%s: %s was not expected", what, key)
		}
	}
}

// measured matches the keys that summaries add. The recording was made without them; the tests of
// metrics compare them.
var measured = regexp.MustCompile(`^(avg|min|max|cnt|sum|p50|p95|p99|p999)_.|_per_namespace$`)

// compareMonitor compares keys of monitor. docs/reference/monitoring.md lists ZooKeeper's keys that
// are missing; those that exist must be ZooKeeper's.
func compareMonitor(t *testing.T, role string, got, want map[string]string) {
	t.Helper()
	for key, typ := range got {
		theirs, ok := want[key]
		switch {
		case strings.HasPrefix(key, "gozkd_"), key == "fsync_threshold_exceed_count", key == "followers", !ok && measured.MatchString(key):
		case !ok || theirs != typ:
			t.Errorf("%s: %s is a %s, in ZooKeeper a %q", role, key, typ, theirs)
		}
	}
	for _, key := range []string{"znode_count", "server_state", "command", "error"} {
		if _, ok := got[key]; !ok {
			t.Errorf("%s: %s is missing", role, key)
		}
	}
}
