package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/internal/probe"
	"github.com/gozkd/gozkd/internal/tcpport"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(watchdog.Watch(m)) }

// serve starts a server on the loopback interface that gives the same answer to every word, and
// returns its address.
func serve(t *testing.T, answer string) string {
	t.Helper()
	return serveWords(t, func(string) string { return answer })
}

func serveWords(t *testing.T, answer func(word string) string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var accepting sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		accepting.Wait()
	})
	accepting.Go(func() { // ends when the test closes the listener
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			word := make([]byte, 4)
			if _, err := io.ReadFull(nc, word); err != nil {
				t.Errorf("no word came: %v", err)
			}
			_, _ = io.WriteString(nc, answer(string(word))) // the asker sees an error
			_ = nc.Close()
		}
	})
	return l.Addr().String()
}

// member returns the answer to srvr of a server in a mode.
func member(mode string) string {
	return "Zookeeper version: 3.9.5-gozkd-0.1.0, built on 11/21/2026 09:52 UTC\nLatency min/avg/max: 0/0.5469/24\nReceived: 14194\nSent: 14189\n" +
		"Connections: 3\nOutstanding: 2\nZxid: 0x100001705\nMode: " + mode + "\nNode count: 2137\n"
}

const cutOff = "This ZooKeeper instance is not currently serving requests\n"

// nobody returns an address that refuses connections until the test ends.
func nobody(t *testing.T) string {
	t.Helper()
	gone, err := tcpport.Reserve("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(gone.Release)
	return gone.Address()
}

// call runs a command and returns its output.
func call(t *testing.T, main cli.Main, getenv func(string) string, args ...string) (status int, out, errs string) {
	t.Helper()
	if getenv == nil {
		getenv = func(string) string { return "" }
	}
	var o, e strings.Builder
	status = main(t.Context(), args, cli.Env{In: strings.NewReader(""), Out: &o, Err: &e, Getenv: getenv})
	return status, o.String(), e.String()
}

func TestStatus_One(t *testing.T) {
	for _, c := range []struct {
		answer       string
		status       int
		out, problem string
	}{
		{member("standalone"), 0, "Mode: standalone\n", ""},
		{member("leader"), 0, "Mode: leader\n", ""},
		{member("follower"), 0, "Mode: follower\n", ""},
		{member("observer"), 0, "Mode: observer\n", ""},
		{member("read-only"), 1, "Mode: read-only\n", "serves only reads: it is not part of a quorum"},
		{member("observer") + "Membership: it is no member\n", 1, "Mode: observer\n", "it is no member"},
		{cutOff, 1, "Error contacting service. It runs, but does not serve.\n", "not part of a quorum, so not serving; its log says why"},
		{"SSH-2.0-OpenSSH_9.2\r\n", 1, "Error contacting service. It is probably not running.\n", `not a ZooKeeper server: it answered "SSH-2.0-OpenSSH_9.2\r"`},
	} {
		address := serve(t, c.answer)
		status, out, errs := call(t, Main, nil, "-server", address)
		want := ""
		if c.problem != "" {
			want = "gozkd status: " + address + ": " + c.problem + "\n"
		}
		if status != c.status || out != c.out || errs != want {
			t.Errorf("%q: status %d\n%s%s", c.answer, status, out, errs)
		}
	}
	address := nobody(t)
	status, out, errs := call(t, Main, nil, "--server", address)
	if status != 1 || out != "Error contacting service. It is probably not running.\n" || errs != "gozkd status: "+address+": connection refused\n" {
		t.Errorf("nobody there: status %d\n%s%s", status, out, errs)
	}
}

func TestStatus_Ensemble(t *testing.T) {
	leader, follower, observer := serve(t, member("leader")), serve(t, member("follower")), serve(t, member("observer"))
	second, alone, cut, down := serve(t, member("leader")), serve(t, member("standalone")), serve(t, cutOff), nobody(t)
	readOnly := serve(t, member("read-only"))
	for _, c := range []struct {
		servers  []string
		problems []string
	}{
		{[]string{leader, follower, observer}, nil},
		{[]string{follower, follower, leader, leader}, nil},
		{[]string{follower, observer}, []string{"which server leads is unknown: name all with -server"}},
		{[]string{follower, readOnly}, []string{readOnly + ": serves only reads: it is not part of a quorum", "no server leads"}},
		{[]string{leader, follower, second}, []string{"2 servers lead: " + leader + ", " + second}},
		{[]string{leader, down}, []string{down + ": connection refused"}},
		{[]string{cut, down}, []string{cut + ": not part of a quorum, so not serving; its log says why", down + ": connection refused",
			"no server that answered leads"}},
		{[]string{leader, alone}, []string{alone + ": is standalone, not a member of an ensemble"}},
	} {
		status, out, errs := call(t, Main, nil, "-server", strings.Join(c.servers, ","))
		want := ""
		for _, p := range c.problems {
			want += "gozkd status: " + p + "\n"
		}
		wantStatus := 0
		if want != "" {
			wantStatus = 1
		}
		if status != wantStatus || errs != want {
			t.Errorf("status %d, %s\nwant %s", status, errs, want)
		}
		for _, s := range c.servers {
			if n := strings.Count(out, s+" "); n != 1 {
				t.Errorf("%d lines of %s in\n%s", n, s, out)
			}
		}
	}
}

func TestStatus_Table(t *testing.T) {
	leader, cut, down := serve(t, member("leader")), serve(t, cutOff), nobody(t)
	_, out, _ := call(t, Main, nil, "-server", cut+","+down+","+leader+"/a/chroot") // a row without figures does not disturb the next
	for _, want := range []string{
		`(?m)^SERVER +MODE +ZXID +CONNECTIONS  OUTSTANDING  LATENCY ms min/avg/max  ZNODES  VERSION$`,
		`(?m)^` + leader + ` +leader +0x100001705  3            2            0/0.5469/24             2137    3\.9\.5-gozkd-0\.1\.0$`,
		`(?m)^` + cut + ` +not serving +not part of a quorum, so not serving$`,
		`(?m)^` + down + ` +down +connection refused$`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("no line %s in\n%s", want, out)
		}
	}
}

func TestStatus_JSON(t *testing.T) {
	leader, down := serve(t, member("leader")), nobody(t)
	status, out, _ := call(t, Main, nil, "-server", leader+","+down, "--output", "json")
	var got struct {
		OK      bool
		Servers []struct {
			Server, Mode, Error, Zxid, Version string
			Connections, Znodes                int
			LatencyMs                          struct{ Avg float64 } `json:"latency_ms"`
		}
		Problems []string
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if status != 1 || got.OK || len(got.Servers) != 2 || len(got.Problems) != 1 {
		t.Fatalf("status %d: %s", status, out)
	}
	if s := got.Servers[0]; s.Server != leader || s.Mode != "leader" || s.Zxid != "0x100001705" || s.Connections != 3 || s.Znodes != 2137 ||
		s.LatencyMs.Avg != 0.5469 || s.Version != "3.9.5-gozkd-0.1.0" || s.Error != "" {
		t.Errorf("%+v", s)
	}
	if s := got.Servers[1]; s.Mode != "down" || s.Error != "connection refused" || s.Zxid != "" {
		t.Errorf("%+v", s)
	}
}

// A full server serves, and so does one whose archive is closed: the last lines say so, without
// their control characters.
func TestStatus_Warnings(t *testing.T) {
	servers := serveWords(t, func(word string) string {
		if word == "srvr" {
			return member("standalone") + "Archive: closed: \x1b\nCertificates: a.pem \x1b ends\n"
		}
		return "zk_gozkd_data_status\tdata limit reached: \x1b\nzk_gozkd_data_full\t1\n"
	})
	for want, args := range map[string][]string{
		"Mode: standalone\ndata limit reached: ·\n" + servers + ": a.pem · ends\nclosed: ·\n": {"-server", servers},
		`"certificates": "a.pem · ends"`:              {"-server", servers, "--output", "json"},
		"\"data_status\": \"data limit reached: ·\",": {"-server", servers, "--output", "json"},
		"\"archive_status\": \"closed: ·\",":          {"-server", servers, "--output", "json"},
	} {
		if status, out, _ := call(t, Main, nil, args...); status != 0 || !strings.Contains(out, want) {
			t.Errorf("status %d, %s\nwant %s", status, out, want)
		}
	}
}

// The first line is that of zkServer.sh status, which scripts parse.
func TestStatus_ZooCfg(t *testing.T) {
	address := serve(t, member("follower"))
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	former := func(port string) string { // the lines, with the client port of server 2 before or after a reconfig
		return "server.1=127.0.0.1:1:2;127.0.0.1:1\nserver.2=127.0.0.1:3:4;" + port + "\nserver.3=127.0.0.1:5:6;127.0.0.1:5\n"
	}
	for name, text := range map[string]string{
		"alone.cfg":    "dataDir=" + dir + "\nclientPort=" + port + "\nclientPortAddress=127.0.0.1\n",
		"ensemble.cfg": "dataDir=" + dir + "\nserver.1=127.0.0.1:1:2;127.0.0.1:1\nserver.2=127.0.0.1:3:4;127.0.0.1:" + port + "\nserver.3=127.0.0.1:5:6;127.0.0.1:5\n",
		"all.cfg":      "dataDir=" + dir + "\nclientPort=" + port + "\n",
		"moved.cfg":    "dataDir=" + dir + "\nreconfigEnabled=true\n" + former("1"),
		"members":      former("1") + "\n" + former(port) + "version=7\n\n" + former("1"),
		"any.cfg":      "dataDir=" + dir + "\nclientPort=0\n",
		"bad.cfg":      "dataDir=" + dir + "\nclientPort=many\n",
		"myid":         "2\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		file, host string
	}{{"alone.cfg", "127.0.0.1"}, {"ensemble.cfg", "127.0.0.1"}, {"all.cfg", "localhost"}, {"moved.cfg", "localhost"}} {
		status, out, errs := call(t, Main, nil, filepath.Join(dir, c.file))
		want := "Client port found: " + port + ". Client address: " + c.host + ". Client SSL: false.\nMode: follower\n"
		if status != 0 || out != want || errs != "" {
			t.Errorf("%s: status %d\n%s%s", c.file, status, out, errs)
		}
		if status, out, errs := call(t, Ruok, nil, filepath.Join(dir, c.file), "-ready"); status != 0 || out != "imok\n" || errs != "" {
			t.Errorf("%s: ruok is %d\n%s%s", c.file, status, out, errs)
		}
	}
	for file, want := range map[string]string{
		"any.cfg": "name the server with -server", "bad.cfg": "clientPort", "missing.cfg": "no such file",
	} {
		status, out, errs := call(t, Main, nil, filepath.Join(dir, file))
		if status != 1 || out != "" || !strings.HasPrefix(errs, "gozkd status: ") || !strings.Contains(errs, want) {
			t.Errorf("%s: status %d\n%s%s", file, status, out, errs)
		}
	}
}

// dialLoopback tries IPv4, then IPv6, without looking up localhost.
func TestDialLoopback(t *testing.T) {
	for _, listens := range []string{"127.0.0.1:5", "[::1]:5", "nowhere"} {
		var tried []string
		dial := func(_ context.Context, network, address string) (net.Conn, error) {
			if tried = append(tried, address); address == listens {
				c, _ := net.Pipe()
				return c, nil
			}
			return nil, errors.New(network + " " + address + ": refused")
		}
		conn, err := dialLoopback(t.Context(), dial, "localhost:5")
		want := []string{"127.0.0.1:5", "[::1]:5"}
		if listens == want[0] {
			want = want[:1]
		}
		if !slices.Equal(tried, want) || (conn != nil) != (listens != "nowhere") || (err == nil) != (conn != nil) {
			t.Errorf("%s: tried %v: %v", listens, tried, err)
		}
		if listens == "nowhere" && err.Error() != "tcp 127.0.0.1:5: refused" {
			t.Error(err)
		}
	}
}

func TestRuok(t *testing.T) {
	serving, cut, readOnly, down := serve(t, member("follower")), serve(t, cutOff), serve(t, member("read-only")), nobody(t)
	for _, c := range []struct {
		args   string
		status int
		errs   string
	}{
		{serving, 0, ""},
		{cut, 0, ""},
		{readOnly, 0, ""},
		{down, 1, down + ": connection refused"},
		{serving + "," + cut, 0, ""},
		{serving + "," + down, 1, down + ": connection refused"},
		{serving + " -ready", 0, ""},
		{cut + " -ready", 1, cut + ": alive, but not ready: it is not part of a quorum, or has not caught up yet; its log says which"},
		{readOnly + " -ready", 1, readOnly + ": alive, but serves only reads: it is not part of a quorum"},
	} {
		out, errs := "imok\n", ""
		if c.status != 0 {
			out, errs = "", "gozkd ruok: "+c.errs+"\n"
		}
		status, gotOut, gotErrs := call(t, Ruok, nil, append([]string{"-server"}, strings.Fields(c.args)...)...)
		if status != c.status || gotOut != out || gotErrs != errs {
			t.Errorf("%s: status %d\n%s%s", c.args, status, gotOut, gotErrs)
		}
	}
}

func TestUsage(t *testing.T) {
	for name, main := range map[string]cli.Main{"status": Main, "ruok": Ruok} {
		for _, args := range []string{"-nonsense", "-server", "-server h:port", "-server h:1 zoo.cfg", "a.cfg b.cfg", "-timeout 0s", "-timeout soon"} {
			status, out, errs := call(t, main, nil, strings.Fields(args)...)
			if status != cli.Usage || out != "" || !strings.HasPrefix(errs, "gozkd "+name+": ") || !strings.Contains(errs, "\nusage: gozkd "+name+" ") {
				t.Errorf("%s %s: status %d\n%s%s", name, args, status, out, errs)
			}
		}
		if status, out, errs := call(t, main, nil, "-help"); status != 0 || !strings.HasPrefix(out, "usage: gozkd "+name) || errs != "" {
			t.Errorf("%s -help: status %d\n%s%s", name, status, out, errs)
		}
	}
	if status, _, errs := call(t, Main, nil, "-output", "xml"); status != cli.Usage || !strings.Contains(errs, "xml") {
		t.Errorf("status %d: %s", status, errs)
	}
}

// A signal interrupts waiting for a server that never answers.
func TestStatus_Interrupted(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // never accepts
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs strings.Builder
	env := cli.Env{Out: &out, Err: &errs, Getenv: func(string) string { return "" }}
	if status := Main(ctx, []string{"-server", l.Addr().String()}, env); status != 1 || !strings.Contains(errs.String(), "canceled") {
		t.Errorf("status %d: %s", status, errs.String())
	}
}

// monitored starts a server that also answers mntr.
func monitored(t *testing.T, mode, mntr string) string {
	t.Helper()
	return serveWords(t, func(word string) string {
		if word == "mntr" {
			return mntr
		}
		return member(mode)
	})
}

// What the servers that were asked know of the others is used: two followers that name their leader
// are an ensemble with a leader, also if the list of servers does not have it.
func TestStatus_Others(t *testing.T) {
	follower := func(others string) string {
		return "zk_gozkd_leader_id\t1\nzk_gozkd_term\t4\nzk_gozkd_peer_1_connected\t1\n" + others
	}
	two := monitored(t, "follower", follower("zk_gozkd_peer_3_connected\t1\n"))
	three := monitored(t, "follower", follower("zk_gozkd_peer_2_connected\t1\n"))
	leads := monitored(t, "leader", "zk_gozkd_leader_id\t1\nzk_gozkd_term\t4\nzk_gozkd_peer_2_connected\t1\nzk_gozkd_peer_3_connected\t0\n"+
		"zk_gozkd_peer_2_in_step\t1\nzk_gozkd_peer_2_lag_entries\t0\nzk_gozkd_peer_3_in_step\t0\n")
	status, out, errs := call(t, Main, nil, "-server", two+","+three)
	if status != 0 || errs != "" || !regexp.MustCompile(`(?m)^server\.1 +leader +as the others see it$`).MatchString(out) || strings.Contains(out, "server.2") {
		t.Errorf("status %d: %s\n%s", status, errs, out)
	}
	status, out, errs = call(t, Main, nil, "-server", leads+","+two)
	if status != 0 || errs != "" || !regexp.MustCompile(`(?m)^server\.3 +behind +as the others see it$`).MatchString(out) {
		t.Errorf("status %d: %s\n%s", status, errs, out)
	}
	// A member that the others cannot reach is a problem of the ensemble, and one that was asked is
	// listed once.
	cut := monitored(t, "leader", "zk_gozkd_leader_id\t1\nzk_gozkd_term\t4\nzk_gozkd_peer_2_connected\t1\nzk_gozkd_peer_3_connected\t0\n")
	follows, down := monitored(t, "follower", follower("zk_gozkd_peer_3_connected\t0\n")), nobody(t)
	for servers, want := range map[string]string{
		cut + "," + follows:              "server.3: cut off from the servers that answered",
		cut + "," + follows + "," + down: down + ": connection refused",
	} {
		status, out, errs = call(t, Main, nil, "-server", servers)
		if status != 1 || errs != "gozkd status: "+want+"\n" || strings.Count(out, "\n") != 4 {
			t.Errorf("status %d: %s\n%s", status, errs, out)
		}
	}
	status, out, errs = call(t, Main, nil, "-server", leads, "-output", "json")
	var got struct{ Others []map[string]any }
	if err := json.Unmarshal([]byte(out), &got); err != nil || status != 0 || errs != "" {
		t.Fatalf("status %d: %v: %s\n%s", status, err, errs, out)
	}
	want := []map[string]any{{"id": 2.0, "role": "in step", "lag": 0.0}, {"id": 3.0, "role": "cut off"}}
	if !reflect.DeepEqual(got.Others, want) {
		t.Errorf("%v, want %v", got.Others, want)
	}
}

// TestStatus_ObserverDown checks that an observer that was not asked may be stopped, and that a
// voter that was asked and is stopped is listed once beside it.
func TestStatus_ObserverDown(t *testing.T) {
	third := nobody(t)
	conf := "clientPort=1\nserver.1=a:2888:3888:participant\nserver.2=b:2888:3888:participant\n" +
		"server.3=c:2888:3888:participant;" + third + "\nserver.4=d:2888:3888:observer\n"
	ensemble := func(down, voters, conf string) string {
		var addresses []string
		for number, mode := range []string{"leader", "follower"} {
			mntr := "zk_gozkd_leader_id\t1\nzk_gozkd_term\t4\nzk_quorum_size\t3\nzk_gozkd_voters_connected\t" + voters +
				fmt.Sprintf("\nzk_gozkd_peer_%d_connected\t1\nzk_gozkd_peer_4_connected\t0\n", 2-number) + down
			addresses = append(addresses, serveWords(t, func(word string) string {
				switch word {
				case "mntr":
					return mntr
				case "conf":
					return conf
				}
				return member(mode)
			}))
		}
		return strings.Join(addresses, ",")
	}
	const up, down = "zk_gozkd_peer_3_connected\t1\n", "zk_gozkd_peer_3_connected\t0\n"
	for _, servers := range []string{ensemble(up, "3", ""), ensemble(up, "?", conf)} { // one tells who votes
		if status, out, errs := call(t, Main, nil, "-server", servers); status != 0 || errs != "" || !strings.Contains(out, "server.4") {
			t.Errorf("status %d: %s\n%s", status, errs, out)
		}
	}
	status, out, errs := call(t, Main, nil, "-server", ensemble(down, "2", conf)+","+third)
	if status != 1 || errs != "gozkd status: "+third+": connection refused\n" || strings.Contains(out, "server.3") || !strings.Contains(out, "server.4") {
		t.Errorf("status %d: %s\n%s", status, errs, out)
	}
	status, _, errs = call(t, Main, nil, "-server", ensemble(down, "2", conf))
	if status != 1 || errs != "gozkd status: server.3: cut off from the servers that answered\n" {
		t.Errorf("status %d: %s", status, errs)
	}
}

// Server 0 is a server like the others, also as the leader that gave no answer.
func TestStatus_OthersFromZero(t *testing.T) {
	one := monitored(t, "follower", "zk_gozkd_leader_id\t0\nzk_gozkd_term\t4\nzk_gozkd_peer_0_connected\t1\n")
	none := monitored(t, "follower", "zk_gozkd_leader_id\t-1\nzk_gozkd_term\t4\nzk_gozkd_peer_0_connected\t1\n")
	for server, role := range map[string]string{one: "leader", none: "connected"} {
		_, out, errs := call(t, Main, nil, "-server", server, "-output", "json")
		var got struct{ Others []map[string]any }
		if err := json.Unmarshal([]byte(out), &got); err != nil || errs != "" {
			t.Fatalf("%v: %s\n%s", err, errs, out)
		}
		if want := []map[string]any{{"id": 0.0, "role": role}}; !reflect.DeepEqual(got.Others, want) {
			t.Errorf("%v, want %v", got.Others, want)
		}
	}
}

// All words of all servers share one limit, also with a server that hangs at its second word.
func TestStatus_OneLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var servers sync.WaitGroup
		defer servers.Wait()
		dial := func(context.Context, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			servers.Go(func() { // ends when the asker closes its end
				defer func() { _ = theirs.Close() }()
				word := make([]byte, 4)
				if _, err := io.ReadFull(theirs, word); err != nil {
					t.Errorf("no word came: %v", err)
				}
				if time.Sleep(4 * time.Second); string(word) == "srvr" {
					_, _ = io.WriteString(theirs, member("follower")) // the asker would see an error
					return
				}
				_, _ = io.Copy(io.Discard, theirs)
			})
			return ours, nil
		}
		hangs := func(ctx context.Context, _ string, _ error) error { <-ctx.Done(); return nil }
		start := time.Now()
		got := ask(t.Context(), targets{addresses: []string{"a:1", "b:1"}, asker: probe.Asker{Dial: dial, Advise: hangs}}, true)
		if took := time.Since(start); took != probe.DefaultTimeout || got[0].state.Mode != "follower" || got[1].monitor != nil {
			t.Errorf("after %v: %+v", took, got)
		}
	})
}
