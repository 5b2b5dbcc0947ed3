package probe

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/server/facts"
)

// recorded returns a recorded answer of a server. The files are named after the server; each member
// had two busy connections.
func recorded(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestParseState(t *testing.T) {
	for file, want := range map[string]State{
		"3.8.0-leader.srvr": {
			Version: "3.8.0-${mvngit.commit.id}", // Debian's
			Mode:    facts.Leader, Zxid: 0x100001ad1, LatencyMs: Latency{Min: 0, Avg: 1.1275, Max: 63}, Received: 15970, Sent: 15967, Connections: 3,
			Outstanding: 4, Znodes: 2137,
		},
		"3.9.5-follower.srvr": {
			Version: "3.9.5-293c895a8d966a3ecb92872be4a1daf87d725da2",
			Mode:    facts.Follower, Zxid: 0x10000178d, LatencyMs: Latency{Min: 0, Avg: 1.9737, Max: 51}, Received: 15679, Sent: 15677, Connections: 3,
			Outstanding: 2, Znodes: 2137,
		},
		"3.9.5-standalone.srvr": {
			Version: "3.9.5-293c895a8d966a3ecb92872be4a1daf87d725da2", Mode: facts.Standalone, Received: 3, Sent: 2, Connections: 1, Znodes: 5,
		},
		"gozkd-leader.srvr": {
			Version: "3.9.5-gozkd-0.1.0",
			Mode:    facts.Leader, Zxid: 0x100001705, LatencyMs: Latency{Min: 0, Avg: 0.5469, Max: 24}, Received: 14194, Sent: 14189, Connections: 3,
			Outstanding: 2, Znodes: 2137,
		},
	} {
		got, err := ParseState(recorded(t, file))
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v\nwant %+v", file, got, err, want)
		}
		if got.Gozkd() != (file == "gozkd-leader.srvr") {
			t.Errorf("%s: Gozkd is %t", file, got.Gozkd())
		}
	}
}

func TestParseState_SomethingElse(t *testing.T) {
	for _, answer := range []string{"", "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", "imok", "Mode"} {
		if s, err := ParseState(answer); err == nil {
			t.Errorf("%q gives %+v", answer, s)
		}
	}
}

func TestParseMonitor(t *testing.T) {
	for file, want := range map[string]map[string]int64{
		"3.8.0-leader.mntr":   {"znode_count": 2137, "synced_followers": 2, "cnt_updatelatency": 1719, "sum_fsynctime": 2829},
		"3.9.5-follower.mntr": {"znode_count": 2137, "watch_count": 0, "cnt_readlatency": 12510, "approximate_data_size": 240483},
		"gozkd-leader.mntr":   {"znode_count": 2137, "synced_followers": 2, "gozkd_leader_id": 1, "gozkd_peer_2_in_step": 1},
	} {
		m := ParseMonitor(recorded(t, file))
		for key, v := range want {
			if got, ok := m.Int(key); !ok || got != v {
				t.Errorf("%s: %s is %d, %t, want %d", file, key, got, ok, v)
			}
		}
		if len(m) < 40 {
			t.Errorf("%s: %d keys only", file, len(m))
		}
		if v, ok := m.Float("no_such_key"); ok {
			t.Errorf("a key that is not there is %v", v)
		}
		if v, ok := m.Float("server_state"); ok {
			t.Errorf("%s: server_state is the number %v", file, v)
		}
	}
}

func TestParseConnections(t *testing.T) {
	for file, want := range map[string]Connection{
		"3.8.0-leader.cons": {
			Client: "127.0.0.1:56478", Session: 0x20002ad65dc0004, Queued: 2, Received: 4068, Sent: 4066, LastOp: "GETD",
			SinceMs: 1795254806308, TimeoutMs: 40000, LastZxid: 0x100001c9a, LatencyMs: Latency{Avg: 1, Max: 82},
		},
		"3.9.5-follower.cons": {
			Client: "127.0.0.1:33172", Session: 0x10002ad6aa2000a, Received: 3406, Sent: 3406, LastOp: "GETD",
			SinceMs: 1795254815361, TimeoutMs: 40000, LastZxid: 0x100001902, LatencyMs: Latency{Avg: 1, Max: 37},
		},
		"gozkd-leader.cons": {
			Client: "127.0.0.1:45420", Session: 0x100000100000867, Queued: 2, Received: 6763, Sent: 6761, LastOp: "GETD",
			SinceMs: 1795254827602, TimeoutMs: 40000, LastZxid: 0x1000018eb, LatencyMs: Latency{Max: 24},
		},
	} {
		got := ParseConnections(recorded(t, file))
		if len(got) != 3 || got[0] != want {
			t.Errorf("%s: %+v\nwant three, first of them %+v", file, got, want)
		}
		if !slices.ContainsFunc(got, func(c Connection) bool { return c.Session == 0 && c.Received == 1 }) {
			t.Errorf("%s: the connection of the word itself is missing: %+v", file, got)
		}
	}
}

func TestParseConnections_Addresses(t *testing.T) {
	for line, want := range map[string]string{
		" /10.0.0.7:4312[1](queued=0,recved=1,sent=0)":             "10.0.0.7:4312",
		" /0:0:0:0:0:0:0:1:4312[1](queued=0,recved=1,sent=0)":      "[::1]:4312",
		" /[0:0:0:0:0:0:0:1]:4312[1](queued=0,recved=1,sent=0)":    "[::1]:4312",
		" /[2001:db8::7]:4312[5](queued=0,recved=1,sent=0)":        "[2001:db8::7]:4312",
		" app1.example/10.0.0.7:4312[1](queued=0,recved=1,sent=0)": "10.0.0.7:4312",
	} {
		if got := ParseConnections(line + "\n"); len(got) != 1 || got[0].Client != want || got[0].Received != 1 {
			t.Errorf("%s: %+v, want %s", line, got, want)
		}
	}
}

// Truncated and foreign lines are skipped; the lines around them are kept.
func TestParseConnections_CutOff(t *testing.T) {
	whole := recorded(t, "3.8.0-leader.cons")
	before := 0
	for end := range len(whole) {
		n := len(ParseConnections(whole[:end]))
		if n < before || n > before+1 {
			t.Fatalf("%d bytes give %d connections, one less gave %d", end, n, before)
		}
		before = n
	}
	if got := ParseConnections("garbage\n\n /(\n) ](\n" + whole); len(got) != 3 {
		t.Errorf("%+v", got)
	}
}

func TestParseSettings(t *testing.T) {
	for file, want := range map[string]struct {
		id      uint64
		clients []string
	}{
		"3.8.0-leader.conf":   {2, []string{"127.0.0.1:29189", "127.0.0.1:20890", "127.0.0.1:21662"}},
		"3.9.5-follower.conf": {1, []string{"127.0.0.1:29217", "127.0.0.1:20185", "127.0.0.1:22970"}},
		"gozkd-leader.conf":   {1, []string{"127.0.0.1:2281", "127.0.0.1:2282", "127.0.0.1:2283"}},
	} {
		got := ParseSettings(recorded(t, file))
		var clients []string
		for i, m := range got.Members {
			if m.ID != uint64(i+1) {
				t.Errorf("%s: member %d in place %d", file, m.ID, i)
			}
			clients = append(clients, m.ClientAddress())
		}
		if got.ServerID != want.id || got.ClientPort == 0 || !slices.Equal(clients, want.clients) {
			t.Errorf("%s: %+v", file, got)
		}
	}
	if got := ParseSettings("serverId=0\nclientPort=-1\nserver.x=nonsense\n"); got.ServerID != 0 || got.ClientPort != 0 || len(got.Members) != 0 {
		t.Errorf("%+v", got)
	}
}

func TestParseHot(t *testing.T) {
	got, err := ParseHot(`{"paths":[{"path":"/a","reads":12.5,"writes":0.1}],"clients":[{"address":"10.0.0.1:4312","session":"0x1","reads":1.2,"writes":0}],"window_s":10}` + "\n")
	if err != nil || len(got.Paths) != 1 || got.Paths[0] != (facts.HotPath{Path: "/a", Reads: 12.5, Writes: 0.1}) || got.Window != 10 ||
		len(got.Clients) != 1 || got.Clients[0] != (facts.HotClient{Address: "10.0.0.1:4312", Session: "0x1", Reads: 1.2}) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := ParseHot("hot?"); err == nil {
		t.Error("what is not JSON is taken")
	}
}

func FuzzParse(f *testing.F) {
	for _, file := range []string{"3.8.0-leader.srvr", "3.9.5-follower.cons", "gozkd-leader.mntr", "3.8.0-leader.conf"} {
		f.Add(recorded(f, file))
	}
	f.Fuzz(func(t *testing.T, answer string) {
		if s, err := ParseState(answer); err == nil && s.Mode == "" {
			t.Error("a state without a mode")
		}
		if n := len(ParseConnections(answer)); n > strings.Count(answer, "\n")+1 {
			t.Errorf("%d connections of fewer lines", n)
		}
		ParseMonitor(answer)
		ParseSettings(answer)
	})
}
