package faultsapi_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/cmd/gozkd-testkit/internal/faultsapi"
	"github.com/gozkd/gozkd/internal/cluster"
)

var open = zk.WorldACL(zk.PermAll)

type faultAnswer struct {
	ID    int
	Fault string
	Count int
	Done  bool
}

type status struct {
	Leader  int
	Members []struct {
		ID      int
		State   string
		Serving bool
		Mode    string
		Zxid    string
	}
}

func TestFaults(t *testing.T) {
	w := start(t, 1)
	c := w.connect(1)
	var f faultAnswer
	w.must("POST", "/faults", `{"kind":"dropReply","op":"create","path":"/a"}`, &f)
	w.must("GET", fmt.Sprintf("/faults/%d", f.ID), "", &f)
	if f.Done || f.Count != 0 || f.Fault != "drop reply of create at /a, once" {
		t.Errorf("%+v", f)
	}
	if _, err := c.Create("/a", []byte("x"), 0, open); !errors.Is(err, zk.ErrConnectionClosed) {
		t.Errorf("create: %v", err)
	}
	w.must("GET", fmt.Sprintf("/faults/%d?wait=20s", f.ID), "", &f)
	if !f.Done || f.Count != 1 {
		t.Errorf("%+v", f)
	}
	var tree map[string]any
	w.must("GET", "/tree", "", &tree)
	if tree["/a"] != "x" {
		t.Errorf("the create was not applied: %v", tree)
	}
	other := w.connect(1)
	for _, code := range []string{`-110`, `"NodeExists"`, `"NODEEXISTS"`, `"NODE_EXISTS"`, `"node exists"`} {
		w.must("POST", "/faults", fmt.Sprintf(`{"kind":"fail","op":"get","code":%s,"session":"0x%x"}`, code, other.SessionID()), nil)
		if _, _, err := other.Get("/"); !errors.Is(err, zk.ErrNodeExists) {
			t.Errorf("%s: %v", code, err)
		}
	}
	w.must("POST", "/faults", fmt.Sprintf(`{"kind":"delay","op":"get","delay":"30ms","times":-1,"session":%d}`, other.SessionID()), &f)
	begin := time.Now()
	if _, _, err := other.Get("/"); err != nil || time.Since(begin) < 30*time.Millisecond {
		t.Errorf("%v after %v", err, time.Since(begin))
	}
	w.must("DELETE", fmt.Sprintf("/faults/%d", f.ID), "", nil)
	if status, _ := w.ask("GET", fmt.Sprintf("/faults/%d", f.ID), ""); status != 404 {
		t.Errorf("a fault that was deleted: %d", status)
	}
	var list []faultAnswer
	w.must("GET", "/faults", "", &list)
	if len(list) != 6 || list[0].ID != 1 {
		t.Errorf("%+v", list)
	}
	w.must("DELETE", "/faults", "", nil)
	w.must("GET", "/faults", "", &list)
	if len(list) != 0 {
		t.Errorf("%+v", list)
	}
}

// The effect of a request is complete when its reply arrives.
func TestMembers(t *testing.T) {
	w := start(t, 3)
	var leader struct{ ID int }
	w.must("GET", "/leader", "", &leader)
	w.must("POST", fmt.Sprintf("/members/%d/kill", leader.ID), "", nil)
	before := leader.ID
	w.must("GET", "/leader", "", &leader)
	if leader.ID == before {
		t.Error("the leader was killed and leads")
	}
	var st status
	w.must("GET", "/status", "", &st)
	if st.Leader != leader.ID || len(st.Members) != 3 || st.Members[before-1].State != "down" || st.Members[leader.ID-1].Mode != "leader" {
		t.Errorf("%+v", st)
	}
	w.must("POST", fmt.Sprintf("/members/%d/start", before), "", &st.Members[before-1])
	if m := st.Members[before-1]; !m.Serving || m.State != "running" || m.Mode != "follower" {
		t.Errorf("%+v", m)
	}
	w.must("POST", fmt.Sprintf("/members/%d/pause", leader.ID), "", nil)
	w.must("GET", "/status", "", &st)
	if st.Members[leader.ID-1].State != "paused" {
		t.Errorf("%+v", st)
	}
	w.must("POST", fmt.Sprintf("/members/%d/resume", leader.ID), "", nil)
	w.must("POST", "/partition", `{"groups":[[1],[2,3]]}`, nil)
	w.eventually("member 1 serves nobody", func() bool { w.must("GET", "/status", "", &st); return !st.Members[0].Serving && st.Leader > 1 })
	w.must("POST", "/heal", "", nil)
	w.eventually("all serve", func() bool {
		w.must("GET", "/status", "", &st)
		return st.Members[0].Serving && st.Members[1].Serving && st.Members[2].Serving
	})
}

func TestSessions(t *testing.T) {
	w := start(t, 3)
	stays, goes := w.connect(2), w.connect(3)
	if _, err := goes.Create("/e", nil, zk.FlagEphemeral, open); err != nil {
		t.Fatal(err)
	}
	var list []struct {
		ID                 string
		TimeoutMs          int
		Connected          bool
		Member, Ephemerals int
	}
	w.must("GET", "/sessions", "", &list)
	if len(list) != 2 || list[0].ID != fmt.Sprintf("0x%x", stays.SessionID()) || !list[0].Connected || list[0].Member != 2 || list[0].TimeoutMs != 10000 || list[1].Ephemerals != 1 || list[1].Member != 3 {
		t.Errorf("%+v", list)
	}
	old := goes.SessionID()
	w.must("POST", fmt.Sprintf("/sessions/%d/expire", old), "", nil)
	if status, text := w.ask("GET", "/tree?path=/e", ""); status != 404 {
		t.Errorf("its ephemeral: %d %s", status, text)
	}
	if status, text := w.ask("POST", fmt.Sprintf("/sessions/%d/expire", old), ""); status != 404 {
		t.Errorf("again: %d %s", status, text)
	}
	// While its only member is paused, a client counts as silent.
	w.must("POST", "/members/2/pause", "", nil)
	w.must("POST", "/advance", `{"by":"1h"}`, nil)
	w.must("POST", "/members/2/resume", "", nil)
	w.must("GET", "/sessions", "", &list)
	for _, s := range list {
		if s.ID == fmt.Sprintf("0x%x", stays.SessionID()) {
			t.Errorf("the session of a client that was away for an hour: %+v", list)
		}
	}
}

// TestRewind_All: what a test did to its servers is undone for the next test.
func TestRewind_All(t *testing.T) {
	w := start(t, 3)
	w.must("PUT", "/tree", `{"/a":"1"}`, nil)
	w.must("POST", "/snapshot", "", nil)
	for _, undone := range [][2]string{
		{"/members/1/kill"}, {"/members/1/pause"}, {"/members/1/partition"}, {"/stop"},
		{"/partition", `{"groups":[[1],[2],[3]]}`}, {"/faults", `{"kind":"fail","op":"get","code":-101,"times":-1}`},
	} {
		m, err := w.cluster.Member(2)
		if err != nil {
			t.Fatal(err)
		}
		// A client of go-zookeeper would open another session after the end of this one, maybe
		// before the test looks at the sessions.
		c, err := client.Connect(t.Context(), client.Config{Servers: []string{m.Address()}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Detach()
		if _, _, err := c.Create(t.Context(), "/mine", nil, client.CreateOptions{Ephemeral: true}); err != nil {
			t.Fatal(err)
		}
		w.must("POST", undone[0], undone[1], nil)
		w.must("POST", "/rewind", `{"id":1,"all":true}`, nil)
		var left struct {
			sessions, faults []any
			tree             map[string]any
		}
		w.must("GET", "/sessions", "", &left.sessions)
		w.must("GET", "/faults", "", &left.faults)
		w.must("GET", "/tree", "", &left.tree)
		if got := fmt.Sprint(left); got != "{[] [] map[/: /a:1]}" {
			t.Errorf("%s: %s is left", undone[0], got)
		}
		var st status
		w.eventually("all serve after "+undone[0], func() bool {
			w.must("GET", "/status", "", &st)
			return st.Leader > 0 && st.Members[0].Serving && st.Members[1].Serving && st.Members[2].Serving
		})
	}
}

func TestTree_RoundTrip(t *testing.T) {
	w := start(t, 1)
	tree := `{"/":"root","/a":"\u0000ü\u2028<&>","/a/binary":{"base64":"` + base64.StdEncoding.EncodeToString([]byte("\xff\x00")) + `"},"/a/null":null,"/b":""}`
	w.must("PUT", "/tree", tree, nil)
	_, got := w.ask("GET", "/tree", "")
	var first, second any
	w.must("GET", "/tree", "", &first)
	w.must("POST", "/snapshot", "", nil)
	w.must("PUT", "/tree", `{"/b":"changed","/c/d":"new"}`, nil)
	w.must("POST", "/rewind", `{"id":1}`, nil)
	w.must("PUT", "/tree", got, nil)
	w.must("GET", "/tree", "", &second)
	if fmt.Sprint(first) != fmt.Sprint(second) || fmt.Sprint(first) != "map[/:root /a:\x00ü\u2028<&> /a/binary:map[base64:/wA=] /a/null:<nil> /b:]" {
		t.Errorf("%v, then %v", first, second)
	}
	c := w.connect(1)
	if data, _, err := c.Get("/a/binary"); err != nil || string(data) != "\xff\x00" {
		t.Errorf("%q %v", data, err)
	}
	var own map[string]any
	w.must("GET", "/tree?path=/zookeeper", "", &own)
	if _, ok := own["/zookeeper/quota"]; !ok {
		t.Errorf("%v", own)
	}
	if _, text := w.ask("GET", "/dump", ""); !strings.Contains(text, "/a = ") {
		t.Errorf("dump: %s", text)
	}
}

func TestWrong(t *testing.T) {
	w := start(t, 3)
	c := w.connect(1)
	if _, err := c.Create("/e", nil, zk.FlagEphemeral, open); err != nil {
		t.Fatal(err)
	}
	for _, r := range []struct {
		method, path, body string
		status             int
		text               string // contained in the error
	}{
		{"GET", "/nothing", "", 404, "GET / lists all requests"},
		{"GET", "/members/1/stop", "", 405, "needs POST, not GET"},
		{"PATCH", "/faults", "", 405, "POST or GET or DELETE"},
		{"HEAD", "/status", "", 405, ""},
		{"GET", "/status?verbose=1", "", 400, `no parameter \"verbose\"`},
		{"POST", "/members/1/stop", `{"now":true}`, 400, "has no body"},
		{"POST", "/members/x/stop", "", 400, `\"x\" is not a number`},
		{"POST", "/members/4/stop", "", 404, "numbered 1 to 3"},
		{"POST", "/members/1/fly", "", 404, "GET / lists"},
		{"POST", "/members/1/start", "", 409, "running already"},
		{"POST", "/members/1/resume", "", 409, "not paused"},
		{"POST", "/partition", "", 400, `expected one like {\"groups\":[[1],[2,3]]}`},
		{"POST", "/partition", `{}`, 400, "there are no groups"},
		{"POST", "/partition", `{"groups":[[1],[4]]}`, 404, "numbered"},
		{"POST", "/partition", `{"groups":[[1],[1]]}`, 400, "two groups"},
		{"POST", "/partition", `{"groups":[["a"]]}`, 400, "expected one like"},
		{"POST", "/partition", `{"group":[[1]]}`, 400, `unknown field \"group\"`},
		{"POST", "/partition", `{"groups":[[1]]} x`, 400, "expected one like"},
		{"POST", "/partition", `{"groups":[[1]]}{}`, 400, "data after"},
		{"POST", "/partition", "{\"groups\":\"\xff\"}", 400, "UTF-8"},
		{"POST", "/sessions/0x1/expire", "", 404, "0x1"},
		{"POST", "/sessions/-5/disconnect", "", 404, "0xfffffffffffffffb"},
		{"POST", "/sessions/0xx/expire", "", 400, "not a session id"},
		{"POST", "/sessions/-0x1/expire", "", 400, "not a session id"},
		{"POST", "/faults", `{"kind":"explode","op":"create"}`, 400, "allowed: dropReply, delay, fail"},
		{"POST", "/faults", `{"kind":"fail","op":"make","code":-1}`, 400, "there are any, connect"},
		{"POST", "/faults", `{"kind":"fail","op":"create","code":"NoSuch"}`, 400, "is not known"},
		{"POST", "/faults", `{"kind":"fail","op":"create","code":7}`, 400, "errors are negative"},
		{"POST", "/faults", `{"kind":"fail","op":"create","code":1.5}`, 400, "is not known"},
		{"POST", "/faults", `{"kind":"delay","op":"create"}`, 400, "a delay of 0s"},
		{"POST", "/faults", `{"kind":"delay","op":"create","delay":5}`, 400, "5 is not a duration"},
		{"POST", "/faults", `{"kind":"delay","op":"create","delay":"5"}`, 400, `\"5\" is not a duration`},
		{"POST", "/faults", `{"kind":"dropReply","op":"create","session":"x"}`, 400, "not a session id"},
		{"POST", "/faults", `{"kind":"dropReply","op":"create","session":{}}`, 400, "not a session id"},
		{"GET", "/faults/1", "", 404, "no fault 1"},
		{"GET", "/faults/1?wait=soon", "", 404, "no fault 1"},
		{"DELETE", "/faults/x", "", 400, "not a number"},
		{"POST", "/advance", `{}`, 400, "by is missing"},
		{"POST", "/advance", `{"by":"-1s"}`, 400, "forward"},
		{"GET", "/tree?path=/none", "", 404, "no znode /none"},
		{"GET", "/tree?path=none", "", 400, "path"},
		{"PUT", "/tree", `{}`, 400, "no znodes"},
		{"PUT", "/tree", `{"a":"x"}`, 400, `path \"a\"`},
		{"PUT", "/tree", `{"/a":5}`, 400, "data is a string"},
		{"PUT", "/tree", `{"/a":{"base64":"?"}}`, 400, "data is a string"},
		{"PUT", "/tree", `{"/a":{"base32":"x"}}`, 400, "data is a string"},
		{"PUT", "/tree", `{"/e/child":"x"}`, 409, "no children for ephemerals"},
		{"PUT", "/tree", `{"/a":"` + strings.Repeat("x", faultsapi.MaxBody) + `"}`, 413, "more than 16777216 bytes"},
		{"POST", "/rewind", `{"id":1}`, 404, "no snapshot 1"},
		{"DELETE", "/snapshot/1", "", 404, "no snapshot 1"},
	} {
		status, text := w.ask(r.method, r.path, r.body)
		if status != r.status || !strings.Contains(text, r.text) || r.method != "HEAD" && !strings.HasPrefix(text, `{"error":`) {
			t.Errorf("%s %s %.60s: %d %s, want %d with %q", r.method, r.path, r.body, status, text, r.status, r.text)
		}
	}
	w.must("POST", "/members/2/kill", "", nil)
	w.must("POST", "/members/3/stop", "", nil)
	var each sync.WaitGroup
	for _, r := range [][3]string{{"GET", "/leader", ""}, {"PUT", "/tree", `{"/a":"x"}`}, {"POST", "/members/3/pause", ""}, {"POST", "/members/2/disconnect", ""}} {
		each.Go(func() { // each waits for a majority for a moment
			if status, text := w.ask(r[0], r[1], r[2]); status != 409 {
				t.Errorf("%q with too few members: %d %s", r, status, text)
			}
		})
	}
	each.Wait()
}

func TestErrCode_Names(t *testing.T) {
	for name, want := range map[string]int32{"NoNode": -101, "BadVersion": -103, "SessionExpired": -112, "ConnectionLoss": -4, "CONNECTIONLOSS": -4, "OPERATIONTIMEOUT": -7, "NoAuth": -102} {
		if got, err := faultsapi.ErrCodeOf(`"` + name + `"`); err != nil || got != want {
			t.Errorf("%s: %d %v", name, got, err)
		}
	}
}

// Web pages are refused: those of other sites, and those whose host name was made to resolve to
// this machine.
func TestWebPages(t *testing.T) {
	w := start(t, 1)
	for host, want := range map[string]int{
		"localhost": 200, "LOCALHOST:80": 200, "127.0.0.1": 200, "127.9.9.9:1": 200, "[::1]:5": 200, "[::1]": 200,
		"evil.example": 403, "evil.example:80": 403, "192.168.0.1": 403, "localhost.evil.example": 403, "127.0.0.1.evil.example": 403, "0.0.0.0": 403,
	} {
		if status, text := w.ask("GET", "/status", "", func(r *http.Request) { r.Host = host }); status != want {
			t.Errorf("Host %s: %d %s", host, status, text)
		}
	}
	for _, origin := range []string{"https://evil.example", "null", ""} {
		if status, _ := w.ask("POST", "/members/1/kill", "", func(r *http.Request) { r.Header["Origin"] = []string{origin} }); status != 403 {
			t.Errorf("Origin %q: %d", origin, status)
		}
	}
	if m, err := w.cluster.Member(1); err != nil || m.State() != cluster.Running {
		t.Error("the server is down: ", err)
	}
}

// A waiting request ends when its client disconnects, when the fault is deleted, and when the
// server is closed.
func TestWaiting(t *testing.T) {
	w := start(t, 1)
	for range 2 {
		w.must("POST", "/faults", `{"kind":"delay","op":"sync","delay":"1s"}`, nil)
	}
	ctx, cancel := context.WithCancel(t.Context())
	answers := make(chan string)
	wait := func(ctx context.Context, id int) {
		r, err := http.NewRequestWithContext(ctx, "GET", fmt.Sprintf("%s/faults/%d?wait=1h", w.srv.URL(), id), nil)
		if err != nil {
			answers <- err.Error()
			return
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			answers <- err.Error()
			return
		}
		_ = response.Body.Close()
		answers <- response.Status
	}
	go wait(ctx, 1) // ends with ctx
	go wait(t.Context(), 2)
	cancel()
	if got := <-answers; !strings.Contains(got, "canceled") {
		t.Error(got)
	}
	w.must("DELETE", "/faults/2", "", nil)
	if got := <-answers; !strings.HasPrefix(got, "404") {
		t.Error(got)
	}
}

func TestClose_EndsWhatWaits(t *testing.T) {
	l, err := cluster.Start(t.Context(), cluster.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	s, err := faultsapi.Start(l, 0, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", strings.TrimPrefix(s.URL(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	r := bufio.NewReader(c)
	say := func(text, want string) {
		t.Helper()
		if _, err := c.Write([]byte(strings.ReplaceAll(text, "\n", "\r\n"))); err != nil {
			t.Fatal(err)
		}
		for line := ""; !strings.Contains(line, want); {
			if line, err = r.ReadString('\n'); err != nil {
				t.Fatalf("no %s: %v", want, err)
			}
		}
	}
	body := `{"kind":"delay","op":"sync","delay":"1s"}`
	say(fmt.Sprintf("POST /faults HTTP/1.1\nHost: localhost\nContent-Length: %d\n\n%s", len(body), body), `{"id":1}`)
	say("GET /faults/1?wait=1h HTTP/1.1\nHost: localhost\nExpect: 100-continue\nTransfer-Encoding: chunked\n\n", "100 Continue") // it is being served
	closed := make(chan error)
	go func() { closed <- s.Close() }() // ends when the request does
	say("0\n\n", "503")
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// Concurrent requests, also contradictory ones, leave the cluster in a sound state.
func TestConcurrent(t *testing.T) {
	w := start(t, 3)
	c := w.connect(1)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() { // ends by itself
			for _, r := range [][3]string{
				{"POST", fmt.Sprintf("/members/%d/restart", i%3+1), ""}, {"GET", "/status", ""}, {"GET", "/sessions", ""},
				{"POST", "/faults", `{"kind":"dropReply","op":"get"}`}, {"GET", "/dump", ""}, {"POST", "/partition", `{"groups":[[1]]}`},
				{"POST", "/heal", ""}, {"DELETE", "/faults", ""}, {"POST", "/advance", `{"by":"1ms"}`}, {"PUT", "/tree", `{"/a":"x"}`},
				{"POST", fmt.Sprintf("/members/%d/disconnect", i%3+1), ""}, {"POST", "/snapshot", ""}, {"POST", "/rewind", `{"id":1}`},
			} {
				if status, text := w.ask(r[0], r[1], r[2]); status >= 500 {
					t.Errorf("%q: %d %s", r, status, text)
				}
			}
		})
	}
	wg.Wait()
	w.must("POST", "/heal", "", nil)
	w.must("GET", "/leader", "", nil)
	w.eventually("the client is served", func() bool { _, _, err := c.Exists("/"); return err == nil })
}
