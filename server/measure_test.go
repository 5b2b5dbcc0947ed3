package server_test

import (
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/internal/testkit/logbuf"
	"github.com/gozkd/gozkd/server"
)

// counted returns the count of each value; for summaries and histograms the number of their values.
// Keys follow the name.
func counted(s *server.Server) map[string]int64 {
	n := make(map[string]int64)
	for _, v := range s.Facts().Monitor() {
		name := strings.TrimSuffix(v.Name+" "+v.Key, " ")
		switch is := v.Is.(type) {
		case int64:
			n[name] = is
		case server.Summary:
			n[name] = is.Count
		case server.Histogram:
			n[name] = int64(is.Count())
		}
	}
	return n
}

// The values of a standalone server change when they should, and srst resets them.
func TestMonitor_Moves(t *testing.T) {
	s := start(t, server.Config{Dir: t.TempDir(), EnforceQuota: true, SnapCount: 1_000_000})
	c := dialIn(t, s, 40*time.Second) // too long for a ping meanwhile
	acl := zk.WorldACL(zk.PermAll)
	must[string](t)(c.Create("/a", []byte("1"), 0, acl))
	_, _, changed, err := c.GetW("/a")
	if err != nil {
		t.Fatal(err)
	}
	_, _, children, err := c.ChildrenW("/a")
	if err != nil {
		t.Fatal(err)
	}
	_, _, created, err := c.ExistsW("/a/b")
	if err != nil {
		t.Fatal(err)
	}
	must[*zk.Stat](t)(c.Set("/a", []byte("22"), -1))
	must[string](t)(c.Create("/a/b", nil, 0, acl))
	_, _, deleted, err := c.GetW("/a/b")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Delete("/a/b", -1); err != nil {
		t.Fatal(err)
	}
	for _, events := range []<-chan zk.Event{changed, children, created, deleted} {
		<-events
	}
	must[string](t)(c.Sync("/a"))
	n := counted(s)
	for name, want := range map[string]int64{
		"connection_request_count": 1, "node_changed_watch_count": 1, "node_children_watch_count": 1, "node_created_watch_count": 1,
		"node_deleted_watch_count": 1, "dbinittime": 1, "write_per_namespace a": 4, "gozkd_request_duration_seconds create": 2,
		"gozkd_request_duration_seconds setData": 1, "gozkd_request_duration_seconds getData": 2, "gozkd_request_duration_seconds sync": 1,
		"gozkd_request_duration_seconds createSession": 1, "updatelatency": 5, "gozkd_write_stage_duration_seconds logged": 5,
		"gozkd_write_stage_duration_seconds written": 5, "prep_processor_queue_time_ms": 5, "read_per_namespace a": 3,
		"looking_count": 0, "proposal_count": 0, "commit_count": 0, "gozkd_slow_requests_total": 0,
	} {
		if n[name] != want {
			t.Errorf("%s is %d, want %d", name, n[name], want)
		}
	}
	for _, name := range []string{
		"readlatency", "read_final_proc_time_ms", "bytes_received_count", "response_bytes", "watch_bytes", "fsynctime", "propagation_latency",
		"sync_processor_batch_size", "sync_processor_queue_size", "gozkd_entry_requests", "gozkd_apply_duration_seconds", "max_client_response_size",
		"requests_in_session_queue",
	} {
		if n[name] <= 0 {
			t.Errorf("%s is %d", name, n[name])
		}
	}
	s.Facts().ResetStats()
	for name, n := range counted(s) {
		if strings.Contains(name, "latency") && n != 0 || strings.HasPrefix(name, "gozkd_request_duration") || name == "fsynctime" && n != 0 {
			t.Errorf("after the reset %s is %d", name, n)
		}
	}
}

// A start that applies the log again does not count what an earlier process has counted.
func TestMonitor_AppliedAgain(t *testing.T) {
	dir, acl := t.TempDir(), zk.WorldACL(zk.PermAll)
	run := func(use func(s *server.Server, c *zk.Conn)) map[string]int64 {
		s := start(t, server.Config{Dir: dir, EnforceQuota: true, SnapCount: 1_000_000})
		if use != nil {
			c := dialIn(t, s, 40*time.Second)
			use(s, c)
			c.Close()
		}
		n := counted(s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return n
	}
	first := run(func(s *server.Server, c *zk.Conn) {
		for _, path := range []string{"/q", "/zookeeper/quota/q", "/zookeeper/quota/q/zookeeper_stats", "/zookeeper/quota/q/zookeeper_limits"} {
			must[string](t)(c.Create(path, []byte("count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=1"), 0, acl))
		}
		if _, err := c.Create("/q/a", nil, 0, acl); err == nil {
			t.Error("a create beyond the quota succeeds")
		}
		if err := s.ExpireSession(t.Context(), dialIn(t, s, 40*time.Second).SessionID()); err != nil {
			t.Error(err)
		}
	})
	again := run(nil)
	for _, name := range []string{
		"write_per_namespace q", "quota_exceeded_error_per_namespace q", "stale_sessions_expired", "propagation_latency",
	} {
		if first[name] == 0 || again[name] > 0 {
			t.Errorf("%s was %d, and is %d after a restart", name, first[name], again[name])
		}
	}
}

// A slow request is logged with its stages, and there are at most ten such lines a second.
func TestSlowRequests(t *testing.T) {
	var log logbuf.Buffer
	begin := time.Now()
	s := start(t, server.Config{SlowRequest: time.Nanosecond, Logger: hclog.New(&hclog.LoggerOptions{Output: &log})})
	c := dialIn(t, s, 10*time.Second)
	must[string](t)(c.Create("/slow", nil, 0, zk.WorldACL(zk.PermAll)))
	for log.Count("op=create ") == 0 { // logged after the reply: the reads could take all lines of this second first
		runtime.Gosched()
	}
	for range 101 {
		if _, _, err := c.Get("/slow"); err != nil {
			t.Fatal(err)
		}
	}
	if n := counted(s)["gozkd_slow_requests_total"]; n < 102 {
		t.Errorf("%d requests were slow", n)
	}
	text := log.String()
	for _, want := range []string{
		`slow request: op=create path=/slow session=0x\w+ client=\S+ xid=\d+ zxid=0x\w+ took_us=\d+ read_us=\d+ queued_us=\d+ logged_us=\d+ committed_us=\d+ applied_us=\d+ written_us=\d+ left_out=0`,
		`slow request: op=getData path=/slow session=0x\w+ client=\S+ xid=\d+ zxid=0x\w+ took_us=\d+ read_us=\d+ answered_us=\d+ left_out=0`,
	} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("no line like %s in\n%s", want, text)
		}
	}
	most := 10 + 10*int(time.Since(begin)/time.Second+1) // also on a machine that stands still meanwhile
	if n := strings.Count(text, "slow request"); n < 10 || n > most {
		t.Errorf("%d lines of at most %d; the limit is ten a second", n, most)
	}
}
