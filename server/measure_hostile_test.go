package server_test

import (
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/internal/testkit/logbuf"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
	"github.com/gozkd/gozkd/server"
)

// Paths that no znode can have, but that a client can name in reads and watches.
var oddPaths = []string{"/a\n2026-11-21 [ERROR] evil", "/\x1b[31mred", "/\U000e0001\u009b31m", "/\u202ereversed", "/\xff\xfe", "/" + strings.Repeat("ü", 100_000)}

// word sends a word on a connection of its own and returns the answer.
func word(t *testing.T, dial func() *raw, name string) string {
	t.Helper()
	c := dial()
	if _, err := io.WriteString(c.nc, name); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(c.nc)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

func dialer(t *testing.T, s *server.Server) func() *raw {
	return func() *raw {
		t.Helper()
		nc, err := s.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = nc.Close() })
		return &raw{t: t, nc: nc}
	}
}

// Text from clients appears in words and log lines on one line, without control sequences, and of
// bounded length.
func TestSlowRequests_Hostile(t *testing.T) {
	var log logbuf.Buffer
	s := start(t, server.Config{SlowRequest: time.Nanosecond, Words: []string{"*"}, Logger: hclog.New(&hclog.LoggerOptions{Output: &log})})
	dial := dialer(t, s)
	c := dial()
	c.connect(10_000, 0, nil)
	for i, path := range oddPaths {
		c.call(int32(i), proto.OpExists, &proto.PathWatchRequest{Path: path, Watch: true})
	}
	c.request(proto.XidAuth, proto.OpAuth, &proto.AuthRequest{Scheme: "digest", Auth: []byte("user:secret")})
	if h, _ := c.reply(); h.Err != proto.OK {
		t.Fatal(h.Err)
	}
	for _, scheme := range []string{"a\n2026-11-21 [ERROR] evil", strings.Repeat("x", 100_000)} {
		other := dial()
		other.connect(10_000, 0, nil)
		other.call(proto.XidAuth, proto.OpAuth, &proto.AuthRequest{Scheme: scheme, Auth: []byte("secret")})
	}
	c.call(9, proto.OpCreate, create{path: "/a"})
	if h, _ := c.call(10, proto.OpSetData, setSecret{}); h.Err != proto.OK {
		t.Fatal(h.Err)
	}
	text := log.String()
	if n := strings.Count(text, "slow request"); n < len(oddPaths) {
		t.Fatalf("%d lines", n)
	}
	if strings.Contains(text, "secret") {
		t.Error("the line of a slow request contains data or a password")
	}
	hot := server.HotSpots{}
	for _, path := range oddPaths {
		hot.Paths = append(hot.Paths, server.HotPath{Path: strings.ToValidUTF8(path, "?")})
	}
	var read server.HotSpots
	if err := json.Unmarshal([]byte(hot.String()), &read); err != nil || !slices.Equal(read.Paths, hot.Paths) {
		t.Errorf("%v: %.500s", err, hot)
	}
	for what, text := range map[string]string{"log": text, "wchp": word(t, dial, "wchp"), "wchc": word(t, dial, "wchc"), "hotp": hot.String()} {
		for line := range strings.Lines(text) {
			line = strings.TrimLeft(strings.TrimSuffix(line, "\n"), "\t") // the words indent
			if strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) || strings.HasPrefix(strings.TrimSpace(line), "2026-11-21 [ERROR]") {
				t.Errorf("%s: %q", what, line)
			}
			if what == "log" && len(line) > 2000 {
				t.Errorf("a log line of %d bytes", len(line))
			}
		}
	}
}

type setSecret struct{}

func (setSecret) Append(b []byte) []byte {
	return jute.AppendInt(jute.AppendBuffer(jute.AppendString(b, "/a"), []byte("secret")), -1)
}

// A client cannot create new series: all unknown ops are one.
func TestMonitor_UnknownOps(t *testing.T) {
	bubble(t, server.Config{Words: []string{"*"}, MaxClientConns: -1}, func(t *testing.T, dial func() *raw) {
		for op := proto.OpCode(-30); op < 200; op++ {
			if strings.HasPrefix(op.String(), "op(") {
				c := dial()
				c.connect(10_000, 0, nil)
				c.request(1, op, nil)
				c.recv()
			}
		}
		mntr := word(t, dial, "mntr")
		if n := strings.Count(mntr, "op("); n > 0 {
			t.Errorf("%d lines of unknown ops", n)
		}
		if !strings.Contains(mntr, "zk_cnt_error_gozkd_request_duration_seconds\t") {
			t.Error("unknown ops are not counted")
		}
	})
}

// A clock that is set back causes no negative times.
func TestMonitor_ClockSetBack(t *testing.T) {
	var clock jumping
	s := start(t, server.Config{Words: []string{"*"}, Now: clock.now, SlowRequest: time.Nanosecond})
	dial := dialer(t, s)
	c := dial()
	c.connect(10_000, 0, nil)
	for i := range int32(50) {
		clock.by.Add(-int64(time.Hour))
		c.call(i, proto.OpGetData, &proto.PathWatchRequest{Path: "/"})
		c.call(i, proto.OpCreate, create{path: "/a"})
	}
	for _, name := range []string{"mntr", "cons", "srvr"} {
		for line := range strings.Lines(word(t, dial, name)) {
			if strings.Contains(line, "\t-") && !strings.HasSuffix(line, "\t-1\n") || strings.Contains(line, "lat=-") || strings.Contains(line, ": -") || strings.Contains(line, "NaN") {
				t.Errorf("%s: %q", name, line)
			}
		}
	}
}
