package admin_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/admin"
	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/server"
)

func TestHandler_Paths(t *testing.T) {
	s := start(t, server.Config{})
	mux := http.NewServeMux()
	mux.Handle("/", admin.Handler(s))
	mux.Handle("/a/b/", http.StripPrefix("/a/b", admin.Handler(s)))
	for _, c := range []struct {
		path   string
		status int
		want   string // a part of the body
	}{
		{"/commands", 200, ">ruok<"},
		{"/commands/", 200, ">ruok<"},
		{"/commands/ruok", 200, `"command": "ruok"`},
		{"/a/b/commands", 200, ">ruok<"},
		{"/a/b/commands/ruok", 200, `"command": "ruok"`},
		{"/commands/nope", 200, `"error": "Unknown command: nope"`},
		{"/commands/RUOK", 200, `"error": "Unknown command: RUOK"`},
		{"/commands/ruok/", 200, `"command": "ruok/"`},
		{"/commands/snapshot", 401, `"command": "snapshot"`},
		{"/commands/reload", 200, `"error": "Unknown command: reload"`},
		{"/commands/%22", 200, `"command": "\""`},
		{"/commandsruok", 404, "not found"},
		{"/", 404, "not found"},
		{"/a/b/", 404, "not found"},
	} {
		if w := get(t, mux, c.path); w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s answers with status %d\n%s", c.path, w.Code, w.Body)
		}
	}
}

func TestHandler_OnlyGet(t *testing.T) {
	h := admin.Handler(start(t, server.Config{}))
	for method, status := range map[string]int{"GET": 200, "HEAD": 200, "POST": 405, "PUT": 405, "DELETE": 405} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, "/commands/ruok", nil))
		if w.Code != status {
			t.Errorf("%s: status %d, want %d", method, w.Code, status)
		}
	}
}

// The links of the list lead to answers, wherever it is mounted, with or without a trailing slash.
func TestHandler_Links(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle("/a/", http.StripPrefix("/a", admin.New(start(t, server.Config{}), admin.Options{Open: true})))
	web := httptest.NewServer(mux)
	defer web.Close()
	for _, list := range []string{"/a/commands", "/a/commands/"} {
		page, err := web.Client().Get(web.URL + list)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(page.Body)
		if err := errors.Join(err, page.Body.Close()); err != nil {
			t.Fatal(err)
		}
		links := regexp.MustCompile(`href="([^"]+)">([a-z_]+)<`).FindAllStringSubmatch(string(text), -1)
		if len(links) < 20 {
			t.Errorf("%d links on\n%s", len(links), text)
		}
		for _, link := range links {
			target, err := page.Request.URL.Parse(link[1])
			if err != nil {
				t.Fatal(err)
			}
			answer, err := web.Client().Get(target.String())
			if err != nil {
				t.Fatal(err)
			}
			var says struct{ Command string }
			err = json.NewDecoder(answer.Body).Decode(&says)
			if err := errors.Join(err, answer.Body.Close()); err != nil || answer.StatusCode != 200 && link[2] != "snapshot" || says.Command != link[2] {
				t.Errorf("%s leads to %s: %v, %q, %v", link[1], target, answer.Status, says.Command, err)
			}
		}
	}
}

// The aliases were tried on ZooKeeper 3.9.5.
func TestHandler_Aliases(t *testing.T) {
	s := start(t, server.Config{})
	for alias, name := range map[string]string{
		"conf": "configuration", "config": "configuration", "crst": "connection_stat_reset", "cons": "connections", "env": "environment",
		"icfg": "initial_configuration", "lsnp": "last_snapshot", "orst": "observer_connection_stat_reset", "sysp": "system_properties",
		"envi": "environment", "gtmk": "get_trace_mask", "isro": "is_read_only", "lead": "leader", "mntr": "monitor", "obsr": "observers",
		"srvr": "server_stats", "stmk": "set_trace_mask", "srst": "stat_reset", "stat": "stats", "wchs": "watch_summary",
		"wchc": "watches", "wchp": "watches_by_path",
	} {
		if status, answer := ask(t, s, alias); status != 200 || answer["command"] != name {
			t.Errorf("%s is %v with status %d, want %s", alias, answer["command"], status, name)
		}
	}
}

// While the server does not serve clients, commands answer with the reason; those that need no data
// answer normally.
func TestHandler_NotServing(t *testing.T) {
	s := newServer(t, server.Config{})
	check := func(when, reason string) {
		t.Helper()
		for _, command := range []string{"ruok", "srvr", "mntr", "cons", "conf", "dump", "watches", "leader", "hash", "srst"} {
			status, answer := ask(t, s, command)
			const want = "This ZooKeeper instance is not currently serving requests"
			if status != 200 || answer["error"] != want || answer["reason"] != reason || answer["command"] != command {
				t.Errorf("%s %s: status %d, %v", command, when, status, answer)
			}
		}
		for _, command := range []string{"environment", "get_trace_mask", "zabstate"} {
			if status, answer := ask(t, s, command); status != 200 || answer["error"] != nil {
				t.Errorf("%s %s: status %d, %v", command, when, status, answer)
			}
		}
		if w := get(t, admin.Handler(s), "/commands"); w.Code != 200 {
			t.Errorf("the list %s: status %d", when, w.Code)
		}
	}
	check("before the start", "not started")
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if status, answer := ask(t, s, "ruok"); status != 200 || answer["error"] != nil {
		t.Errorf("status %d, %v", status, answer)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	check("after the end", "closed")
}

func TestCommands_Clients(t *testing.T) {
	s := start(t, server.Config{})
	a, b := use(t, s)
	ids := []string{fmt.Sprint(a.SessionID()), fmt.Sprint(b.SessionID())}

	_, answer := ask(t, s, "watches")
	want := fmt.Sprintf("map[%s:[/ /none] %s:[/]]", ids[0], ids[1])
	if got := fmt.Sprint(answer["session_id_to_watched_paths"]); got != want {
		t.Errorf("watches: %s, want %s", got, want)
	}
	_, answer = ask(t, s, "watches_by_path")
	want = fmt.Sprintf("map[/:[%s %s] /none:[%s]]", ids[0], ids[1], ids[0])
	if got := fmt.Sprint(answer["path_to_session_ids"]); got != want {
		t.Errorf("watches_by_path: %s, want %s", got, want)
	}
	_, answer = ask(t, s, "watch_summary")
	if got := fmt.Sprint(answer); got != "map[command:watch_summary error:<nil> num_connections:2 num_paths:2 num_total_watches:3]" {
		t.Errorf("watch_summary: %s", got)
	}
	_, answer = ask(t, s, "dump")
	want = fmt.Sprintf("map[%s:[/e%s] %s:[/e%s]]", ids[0], ids[0], ids[1], ids[1])
	if got := fmt.Sprint(answer["session_id_to_ephemeral_paths"]); got != want {
		t.Errorf("dump: %s, want %s", got, want)
	}
	if got := fmt.Sprint(answer["expiry_time_to_session_ids"]); !strings.Contains(got, ids[0]) || !strings.Contains(got, ids[1]) {
		t.Errorf("dump: %s", got)
	}
}

// The answer has every line of the word. Numbers are numbers.
func TestCommands_MonitorIsTheWord(t *testing.T) {
	s := start(t, server.Config{Words: []string{"mntr"}, Dir: t.TempDir()})
	nc, err := net.Dial("tcp", s.ConnectString())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if _, err := io.WriteString(nc, "mntr"); err != nil {
		t.Fatal(err)
	}
	word, err := io.ReadAll(nc)
	if err != nil {
		t.Fatal(err)
	}
	_, answer := ask(t, s, "monitor")
	n := 0
	for line := range strings.Lines(string(word)) {
		key, _, _ := strings.Cut(strings.TrimPrefix(line, "zk_"), "\t")
		if _, ok := answer[key]; !ok {
			t.Errorf("no %s", key)
		}
		n++
	}
	if n < 25 || len(answer) != n+2 {
		t.Errorf("%d lines of the word, %d keys", n, len(answer))
	}
	if answer["znode_count"] != json.Number("5") || answer["server_state"] != "standalone" {
		t.Error(answer)
	}
}

func TestCommands_Resets(t *testing.T) {
	s := start(t, server.Config{})
	use(t, s)
	stats := func() string {
		_, answer := ask(t, s, "server_stats")
		return fmt.Sprint(answer["server_stats"].(map[string]any)["packets_received"])
	}
	received := func() (n string) {
		_, answer := ask(t, s, "connections")
		for _, c := range answer["connections"].([]any) {
			n += fmt.Sprint(c.(map[string]any)["packets_received"], " ")
		}
		return n
	}
	if stats() == "0" || strings.Contains(received(), "0 ") {
		t.Errorf("packets of the server: %s, of the connections: %s", stats(), received())
	}
	ask(t, s, "stat_reset")
	ask(t, s, "connection_stat_reset")
	if stats() != "0" || received() != "0 0 " {
		t.Errorf("after the resets, packets of the server: %s, of the connections: %s", stats(), received())
	}
}

func TestCommands_TraceMask(t *testing.T) {
	s := start(t, server.Config{})
	for _, c := range []struct{ command, mask, fails string }{
		{"gtmk", "306", ""},
		{"stmk?traceMask=-5", "-5", ""},
		{"gtmk", "-5", ""},
		{"stmk", "<nil>", "setTraceMask requires long traceMask argument"},
		{"stmk?traceMask=x", "<nil>", "setTraceMask requires long traceMask argument, got x"},
		{"gtmk", "-5", ""},
	} {
		_, answer := ask(t, s, c.command)
		fails, _ := answer["error"].(string)
		if got := fmt.Sprint(answer["tracemask"]); got != c.mask || fails != c.fails {
			t.Errorf("%s: %v", c.command, answer)
		}
	}
}

func TestCommands_Ensemble(t *testing.T) {
	withThree(t, func(t *testing.T, servers map[string]*server.Server) {
		leader := memberid.Number(servers["leader"].Status().Member)
		for role, s := range servers {
			_, answer := ask(t, s, "leader")
			want := fmt.Sprintf("%t %d 127.0.0.1", role == "leader", leader)
			if got := fmt.Sprintf("%v %v %v", answer["is_leader"], answer["leader_id"], answer["leader_ip"]); got != want {
				t.Errorf("leader on a %s: %s, want %s", role, got, want)
			}
			_, answer = ask(t, s, "zabstate")
			want = fmt.Sprintf("%d %t %t broadcast", memberid.Number(s.Status().Member), role == "leader", role != "observer")
			if got := fmt.Sprintf("%v %v %v %v", answer["myid"], answer["is_leader"], answer["voting"], answer["zabstate"]); got != want {
				t.Errorf("zabstate on a %s: %s, want %s", role, got, want)
			}
			_, answer = ask(t, s, "observers")
			want = "0 []"
			if role == "leader" {
				want = "1 [map[sid:2]]"
			}
			if got := fmt.Sprintf("%v %v", answer["synced_observers"], answer["observers"]); got != want {
				t.Errorf("observers on a %s: %s, want %s", role, got, want)
			}
		}
		// Without the other voter there is no leader, and all commands except zabstate say so.
		if err := servers["follower"].Close(); err != nil {
			t.Fatal(err)
		}
		s := servers["leader"]
		for begin := time.Now(); !strings.Contains(fmt.Sprint(s.NotServing()), "no leader"); time.Sleep(10 * time.Millisecond) {
			if time.Since(begin) > time.Minute {
				t.Fatal("a leader without followers serves for a minute")
			}
		}
		if status, answer := ask(t, s, "srvr"); status != 200 || !strings.HasPrefix(fmt.Sprint(answer["reason"]), "no leader, which needs a majority of the voters [") {
			t.Errorf("without a leader: status %d, %v", status, answer)
		}
		if _, answer := ask(t, s, "zabstate"); answer["zabstate"] != "election" {
			t.Errorf("without a leader: %v", answer)
		}
	})
}

// Every request gets a well-formed answer, and no part of the request becomes part of the page or
// of a header.
func TestHandler_Hostile(t *testing.T) {
	h := admin.New(start(t, server.Config{}), admin.Options{Snapshot: true, Shed: true, Interval: -1})
	long := strings.Repeat("x", 100_000)
	for _, path := range []string{
		"/commands/" + long, "/commands/%00", "/commands/%ff%fe", "/commands/%0d%0aX:%201", "/commands/<script>", "/commands//ruok", "/commands/../commands/ruok",
		"/commands/stmk?traceMask=" + long, "/commands/stmk?traceMask=99999999999999999999", "/commands/stmk?%zz", "/commands/snapshot?streaming=%00",
		"/commands/snapshot?streaming=false&streaming=true", "/readyz?verbose=" + long,
	} {
		for _, method := range []string{"GET", "POST", "HEAD", "TRACE", "x"} {
			for _, who := range []string{"", " ", "digest", "digest " + long, "digest \x00:\xff", "ip", "ip 1.2.3.4", long, "digest a:b"} {
				w := do(t, h, method, path, &who, long)
				if w.Code >= 500 || w.Header().Get("X") != "" {
					t.Errorf("%s %.40s by %.20q: status %d, %v", method, path, who, w.Code, w.Header())
				}
				if w.Header().Get("Content-Type") == "application/json" && !json.Valid(w.Body.Bytes()) {
					t.Errorf("%s %.40s by %.20q: %.200s", method, path, who, w.Body)
				}
			}
		}
	}
}
