package server_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/internal/version"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

var allWords = []string{
	"ruok", "srvr", "stat", "conf", "cons", "crst", "srst", "dump", "envi", "wchs", "wchc", "wchp", "dirs", "isro", "gtmk",
	"stmk", "hash", "mntr",
}

// ask sends bytes on a new connection and returns all data until the server closes it.
func ask(t testing.TB, addr, send string) string {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if err := nc.SetDeadline(time.Now().Add(10 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(nc, send); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(nc)
	if err != nil {
		t.Fatalf("%q: %v after %q", send, err, answer)
	}
	return string(answer)
}

// The patterns were written from what ZooKeeper 3.8.0 and 3.9.5 answered in the state that
// wordsState makes, and match it, but for mntr, which has more keys there, and hash, which has a
// line for every 128 transactions.
const (
	patternState = `Latency min/avg/max: \d+/\d+\.\d{1,4}/\d+\nReceived: \d+\nSent: \d+\nConnections: 3\nOutstanding: 0\n` +
		`Zxid: 0x[0-9a-f]+\nMode: standalone\nNode count: 9\n`
	patternVersion = `\d+\.\d+\.\d+-\S+, built on \S+ \d\d:\d\d UTC`
	patternPeer    = `/127\.0\.0\.1:\d+`
	patternBrief   = ` ` + patternPeer + `\[[01]\]\(queued=0,recved=\d+,sent=\d+\)\n`
	patternSession = ` ` + patternPeer + `\[1\]\(queued=0,recved=\d+,sent=\d+,sid=0x[0-9a-f]+,lop=[A-Z2]+,est=\d{13},to=\d+,` +
		`lcxid=0x[0-9a-f]+,lzxid=0x[0-9a-f]+,lresp=\d+,llat=\d+,minlat=\d+,avglat=\d+,maxlat=\d+\)\n`
	patternDate = `[A-Z][a-z]{2} [A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d [A-Z]+ \d{4}`
)

var wordPatterns = map[string]string{
	"ruok": `imok`,
	"srvr": `Zookeeper version: ` + patternVersion + `\n` + patternState,
	"stat": `Zookeeper version: ` + patternVersion + `\nClients:\n(` + patternBrief + `){3}\n` + patternState,
	"conf": `clientPort=\d+\nsecureClientPort=-1\ndataDir=\S*\ndataDirSize=\d+\ndataLogDir=\S*\ndataLogSize=\d+\ntickTime=\d+\n` +
		`maxClientCnxns=\d+\nminSessionTimeout=\d+\nmaxSessionTimeout=\d+\nclientPortListenBacklog=-1\nserverId=\d+\n`,
	"cons": `((` + patternSession + `)| ` + patternPeer + `\[0\]\(queued=0,recved=1,sent=0\)\n){3}\n`,
	"dump": `SessionTracker dump:\nSession Sets \(\d+\)/\(2\):\n([012] expire at ` + patternDate + `:\n(\t0x[0-9a-f]+\n)*)+` +
		`ephemeral nodes dump:\nSessions with Ephemerals \(2\):\n(0x[0-9a-f]+:\n(\t/p/[ef]\d?\n){1,2}){2}` +
		`Connections dump:\nConnections Sets \(\d+\)/\(3\):\n([123] expire at ` + patternDate +
		`:\n(\tip: ` + patternPeer + ` sessionId: 0x[0-9a-f]+\n)+)+`,
	"envi": `Environment:\nzookeeper\.version=` + patternVersion + `\nhost\.name=.*\njava\.version=.*\njava\.vendor=.*\n` +
		`java\.home=.*\njava\.class\.path=.*\njava\.library\.path=.*\njava\.io\.tmpdir=.*\njava\.compiler=.*\nos\.name=.*\n` +
		`os\.arch=.*\nos\.version=.*\nuser\.name=.*\nuser\.home=.*\nuser\.dir=.*\nos\.memory\.free=\d+MB\n` +
		`os\.memory\.max=\d+MB\nos\.memory\.total=\d+MB\n`,
	"wchs":                                 `2 connections watching 2 paths\nTotal watches:3\n`,
	"wchc":                                 `(0x[0-9a-f]+\n(\t/p\n|\t/nope\n){1,2}){2}\n`,
	"wchp":                                 `(/p\n(\t0x[0-9a-f]+\n){2}|/nope\n\t0x[0-9a-f]+\n){2}\n`,
	"dirs":                                 `datadir_size: \d+\nlogdir_size: \d+\n`,
	"isro":                                 `rw`,
	"gtmk":                                 `306`,
	"stmk\x00\x00\x00\x00\x00\x00\x01\x32": `306`,
	"hash":                                 `([0-9a-f]+: -?\d+\n)+`,
	"mntr":                                 `(zk_[A-Za-z0-9_]+\t(` + patternVersion + `|standalone|-?\d+(\.\d{1,6})?)\n)+`,
	"crst":                                 `Connection stats reset\.\n`,
	"srst":                                 `Server stats reset\.\n`,
}

// wordsState connects two clients with ephemerals and watches: three data watches and a child
// watch.
func wordsState(t testing.TB, addr string) {
	t.Helper()
	a, _ := connect(t, addr)
	b, _ := connect(t, addr)
	acl := zk.WorldACL(zk.PermAll)
	for path, c := range map[string]*zk.Conn{"/p/e1": a, "/p/e2": a, "/p/f": b} {
		if _, err := a.Create("/p", []byte("12345"), 0, acl); err != nil && !errors.Is(err, zk.ErrNodeExists) {
			t.Fatal(err)
		}
		if _, err := c.Create(path, nil, zk.FlagEphemeral, acl); err != nil {
			t.Fatal(err)
		}
	}
	_, _, _, err1 := a.GetW("/p")
	_, _, _, err2 := a.ExistsW("/nope")
	_, _, _, err3 := b.GetW("/p")
	_, _, _, err4 := b.ChildrenW("/p")
	for _, err := range []error{err1, err2, err3, err4} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestWords_Formats(t *testing.T) {
	for name, dir := range map[string]string{"memory": "", "disk": t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			addr := start(t, server.Config{Words: []string{"*"}, Dir: dir}).ConnectString()
			wordsState(t, addr)
			for word, pattern := range wordPatterns {
				if word == "crst" || word == "srst" {
					continue
				}
				if got := ask(t, addr, word); !regexp.MustCompile(`\A(?:` + pattern + `)\z`).MatchString(got) {
					t.Errorf("%q answers\n%s\nwant a match of\n%s", word, got, pattern)
				}
			}
			if got := ask(t, addr, "ruok\n"); got != "imok" {
				t.Errorf("with a line feed: %q", got)
			}
			for _, word := range []string{"crst", "srst"} {
				if got := ask(t, addr, word); !regexp.MustCompile(`\A` + wordPatterns[word] + `\z`).MatchString(got) {
					t.Errorf("%s answers %q", word, got)
				}
			}
		})
	}
}

// monitor returns mntr as a map.
func monitor(t testing.TB, addr string) map[string]string {
	t.Helper()
	m := make(map[string]string)
	for line := range strings.Lines(ask(t, addr, "mntr")) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if _, twice := m[key]; twice {
			t.Errorf("%s is there twice", key)
		}
		m[key] = value
	}
	return m
}

func TestWords_Monitor(t *testing.T) {
	addr := start(t, server.Config{Words: []string{"mntr"}, Dir: t.TempDir()}).ConnectString()
	wordsState(t, addr)
	m := monitor(t, addr)
	for key, want := range map[string]string{
		"zk_server_state": "standalone", "zk_num_alive_connections": "3", "zk_outstanding_requests": "0",
		"zk_znode_count": "9", "zk_watch_count": "4", "zk_ephemerals_count": "3", "zk_global_sessions": "2",
		"zk_approximate_data_size": "65", // as ZooKeeper has it for these znodes
		"zk_auth_failed_count":     "0", "zk_connection_rejected": "0",
	} {
		if m[key] != want {
			t.Errorf("%s is %q, want %q", key, m[key], want)
		}
	}
	// The keys that monitoring tools rely on, as far as a standalone ZooKeeper has them.
	keys := []string{
		"zk_version", "zk_avg_latency", "zk_min_latency", "zk_max_latency", "zk_packets_received", "zk_packets_sent", "zk_uptime",
		"zk_cnt_fsynctime", "zk_avg_snapshottime",
	}
	if runtime.GOOS == "linux" || runtime.GOOS == "darwin" {
		keys = append(keys, "zk_open_file_descriptor_count", "zk_max_file_descriptor_count")
	}
	for _, key := range keys {
		if _, ok := m[key]; !ok {
			t.Errorf("%s is missing", key)
		}
	}
	if n, err := strconv.Atoi(m["zk_cnt_fsynctime"]); err != nil || n == 0 {
		t.Errorf("after writes to a disk, zk_cnt_fsynctime is %q", m["zk_cnt_fsynctime"])
	}
}

func TestWords_Resets(t *testing.T) {
	addr := start(t, server.Config{Words: []string{"*"}}).ConnectString()
	wordsState(t, addr)
	before := regexp.MustCompile(`recved=\d+,sent=\d+,sid=\w+,lop=(GET[CD]|EXIS),.*,lcxid=`)
	if got := ask(t, addr, "cons"); len(before.FindAllString(got, -1)) != 2 {
		t.Fatalf("before crst:\n%s", got)
	}
	ask(t, addr, "crst")
	// From ZooKeeper's answer after crst. Neither client has a reason to ping yet.
	after := regexp.MustCompile(`\(queued=0,recved=0,sent=0,sid=\w+,lop=NA,est=\d+,to=40000,lzxid=0xffffffffffffffff,lresp=0,llat=0,minlat=0,avglat=0,maxlat=0\)`)
	if got := ask(t, addr, "cons"); len(after.FindAllString(got, -1)) != 2 {
		t.Errorf("after crst:\n%s", got)
	}
	ask(t, addr, "srst")
	// The answer to srst was sent after the reset, and srvr was received.
	want := "Latency min/avg/max: 0/0.0/0\nReceived: 1\nSent: 1\n"
	if got := ask(t, addr, "srvr"); !strings.Contains(got, want) {
		t.Errorf("after srst:\n%s", got)
	}
	if m := monitor(t, addr); m["zk_cnt_fsynctime"] != "0" || m["zk_znode_count"] != "9" {
		t.Errorf("after srst: %v", m)
	}
}

func TestWords_Whitelist(t *testing.T) {
	for _, c := range []struct{ listed, allowed []string }{
		{nil, []string{"srvr"}},
		{[]string{"stat", "stmk"}, []string{"srvr", "stat", "stmk"}},
		{[]string{"*"}, allWords},
	} {
		addr := start(t, server.Config{Words: c.listed}).ConnectString()
		for _, word := range allWords {
			got := ask(t, addr, word+"\x00\x00\x00\x00\x00\x00\x00\x00")
			want := true
			for _, a := range c.allowed {
				want = want && a != word
			}
			if refused := got == word+" is not executed because it is not in the whitelist.\n"; refused != want {
				t.Errorf("whitelist %v: %s answers %q", c.listed, word, got)
			}
		}
		for _, unknown := range []string{"help", "RUOK", "ruo!", "orst"} {
			if got := ask(t, addr, unknown); got != "" {
				t.Errorf("%s answers %q", unknown, got)
			}
		}
	}
}

func TestWords_TraceMask(t *testing.T) {
	addr := start(t, server.Config{Words: []string{"gtmk", "stmk"}}).ConnectString()
	mask := int64(-5)
	set := "stmk" + string(binary.BigEndian.AppendUint64(nil, uint64(mask)))
	for _, c := range []struct{ send, want string }{{"gtmk", "306"}, {set, "-5"}, {"gtmk", "-5"}} {
		if got := ask(t, addr, c.send); got != c.want {
			t.Errorf("%q answers %q, want %q", c.send, got, c.want)
		}
	}
	refusing := start(t, server.Config{Words: []string{"gtmk"}}).ConnectString()
	ask(t, refusing, set)
	if got := ask(t, refusing, "gtmk"); got != "306" {
		t.Errorf("a refused stmk set the mask to %s", got)
	}
}

// A stmk whose mask never comes ends with the handshake timeout, without an answer.
func TestWords_TraceMaskCut(t *testing.T) {
	cfg := server.Config{Words: []string{"*"}}
	bubble(t, cfg, func(t *testing.T, dial func() *raw) {
		c, begin := dial(), time.Now()
		if _, err := c.nc.Write([]byte("stmk\x00\x00\x00")); err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(c.nc); len(b) > 0 || err != nil {
			t.Errorf("answered with %q, %v", b, err)
		}
		if took := time.Since(begin); took != 10*time.Second {
			t.Errorf("closed after %v", took)
		}
	})
}

// Clients that read only once get the whole of an answer of ordinary length.
func TestWords_OneWrite(t *testing.T) {
	bubble(t, server.Config{Words: []string{"*"}}, func(t *testing.T, dial func() *raw) {
		for _, word := range allWords {
			if word == "mntr" {
				continue // ZooKeeper's answer has 18 kB, so its readers read more than once
			}
			c := dial()
			if _, err := c.nc.Write([]byte(word + "\x00\x00\x00\x00\x00\x00\x00\x00")[:max(4, 12*strings.Count(word, "stmk"))]); err != nil {
				t.Fatal(err)
			}
			b := make([]byte, 8192) // kazoo's buffer
			n, err := c.nc.Read(b)
			if err != nil || n == 0 {
				t.Fatalf("%s: %d bytes, %v", word, n, err)
			}
			if rest, err := io.ReadAll(c.nc); len(rest) > 0 || err != nil {
				t.Errorf("%s: %d bytes, and later %d more, %v", word, n, len(rest), err)
			}
		}
	})
}

// An answer longer than the buffer arrives completely, and a client that does not read it is
// disconnected.
func TestWords_Long(t *testing.T) {
	const n = 800
	bubble(t, server.Config{Words: []string{"*"}}, func(t *testing.T, dial func() *raw) {
		c := dial()
		c.connect(40_000, 0, nil)
		want := fmt.Sprintf("%v\n", c.id)
		for i := range n {
			path := fmt.Sprintf("/%0350d", i)
			want += "\t" + path + "\n"
			if h, _ := c.call(int32(i), proto.OpAddWatch, &proto.AddWatchRequest{Path: path}); h.Err != proto.OK {
				t.Fatal(h)
			}
		}
		good, lazy := dial(), dial()
		for _, r := range []*raw{good, lazy} {
			if _, err := r.nc.Write([]byte("wchc")); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := io.ReadAll(good.nc); string(got) != want+"\n" || err != nil {
			t.Errorf("%d bytes, want %d, %v", len(got), len(want)+1, err)
		}
		time.Sleep(11 * time.Second) // of the bubble's time: longer than a handshake may take
		if got, err := io.ReadAll(lazy.nc); len(got) > 0 || err != nil {
			t.Errorf("still there for who did not read: %d bytes, %v", len(got), err)
		}
	})
}

// However many clients ask for long answers and do not read them, only a few answers are made at
// once, short words are answered, and the server stops at once.
func TestWords_ManyAtOnce(t *testing.T) {
	const clients = 50 // fewer than maxClientCnxns
	bubble(t, server.Config{Words: []string{"*"}}, func(t *testing.T, dial func() *raw) {
		var lazy []*raw
		for range clients {
			c := dial()
			if _, err := c.nc.Write([]byte("cons")); err != nil {
				t.Fatal(err)
			}
			lazy = append(lazy, c)
		}
		synctest.Wait()
		begun := 0
		for _, c := range lazy {
			if err := c.nc.SetReadDeadline(time.Now().Add(time.Nanosecond)); err != nil {
				t.Fatal(err)
			}
			if n, _ := c.nc.Read(make([]byte, 1)); n > 0 {
				begun++
			}
		}
		if begun == 0 || begun > 4 {
			t.Errorf("%d answers of %d were being sent at once", begun, clients)
		}
		begin := time.Now()
		for _, word := range []string{"ruok", "srvr", "mntr", "conf"} {
			c := dial()
			if _, err := c.nc.Write([]byte(word)); err != nil {
				t.Fatal(err)
			}
			if text, err := io.ReadAll(c.nc); len(text) == 0 || err != nil {
				t.Errorf("%s: %q %v", word, text, err)
			}
		}
		if took := time.Since(begin); took > 0 {
			t.Errorf("short words took %v", took)
		}
	})
}

// go-zookeeper's parsers accept the answers.
func TestWords_GoZookeeper(t *testing.T) {
	addr := start(t, server.Config{Words: []string{"*"}}).ConnectString()
	stats, ok := zk.FLWSrvr([]string{addr}, time.Minute)
	if !ok || stats[0].Error != nil || stats[0].Mode != zk.ModeStandalone || stats[0].NodeCount != 5 || stats[0].Connections != 1 {
		t.Errorf("srvr: %v, %+v", ok, stats[0])
	}
	if stats[0].Version != "3.9.5-gozkd-"+version.Get().String() {
		t.Errorf("version %q", stats[0].Version)
	}
	connect(t, addr)
	// The flag is false on every server: FLWCons can't read the line of its own connection, which
	// has no session.
	clients, _ := zk.FLWCons([]string{addr}, time.Minute)
	if c := clients[0].Clients; len(c) != 1 || c[0].LastOperation != "SESS" || c[0].Timeout != 40_000 {
		t.Errorf("cons: %+v", c)
	}
	if !zk.FLWRuok([]string{addr}, time.Minute)[0] {
		t.Error("ruok")
	}
}

// The bytes that telnet sends when it leaves are not logged as an error.
func TestWords_TelnetClose(t *testing.T) {
	var log bytes.Buffer
	cfg := server.Config{Logger: hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Debug})}
	s := start(t, cfg)
	if got := ask(t, s.ConnectString(), "\xff\xf4\xff\xfd"); got != "" {
		t.Errorf("answered %q", got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if said := log.String(); strings.Contains(said, "bad request") {
		t.Errorf("logged %s", said)
	}
}

func TestWords_Environment(t *testing.T) {
	addr := start(t, server.Config{Words: []string{"envi"}}).ConnectString()
	got := ask(t, addr, "envi")
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"host.name=" + host, "java.version=" + runtime.Version(), "os.arch=" + runtime.GOARCH} {
		if !strings.Contains(got, "\n"+want+"\n") {
			t.Errorf("no line %q in\n%s", want, got)
		}
	}
}

// Config.Settings are lines of conf: in the place of the line with the same name, or at the end.
func TestWords_Settings(t *testing.T) {
	cfg := server.Config{Words: []string{"conf"}, Settings: []server.Setting{
		{Key: "clientPortListenBacklog", Value: "77"}, {Key: "syncLimit", Value: "5"},
	}}
	got := ask(t, start(t, cfg).ConnectString(), "conf")
	if !strings.HasSuffix(got, "\nclientPortListenBacklog=77\nserverId=1\nsyncLimit=5\n") {
		t.Error(got)
	}
}
