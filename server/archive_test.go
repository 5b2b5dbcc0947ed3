package server_test

import (
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/server"
)

// mntr shows when the archive was verified, and whether that failed, and srvr that it is closed.
func TestArchiveStats_Words(t *testing.T) {
	for _, c := range []struct {
		stats      server.ArchiveStats
		at, failed string
		closed     string
	}{
		{server.ArchiveStats{}, "0", "0", ""},
		{server.ArchiveStats{Verified: time.Unix(1e9, 5)}, "1000000000", "0", ""},
		{server.ArchiveStats{Verified: time.Unix(1e9, 0), VerifyFailed: true}, "1000000000", "1", ""},
		{server.ArchiveStats{Fenced: "closed"}, "0", "0", "Archive: closed\n"},
	} {
		cfg := server.Config{Words: []string{"mntr"}, ArchiveStats: func() server.ArchiveStats { return c.stats }}
		s := start(t, cfg)
		got := monitor(t, s.ConnectString())
		if at, failed := got["zk_gozkd_archive_verified_seconds"], got["zk_gozkd_archive_verify_failed"]; at != c.at || failed != c.failed {
			t.Errorf("%+v: at %q, failed %q", c.stats, at, failed)
		}
		_, archive, _ := strings.Cut(ask(t, s.ConnectString(), "srvr"), "Node count: 5\n")
		if fenced := got["zk_gozkd_archive_fenced"] == "1"; archive != c.closed || fenced != (c.closed != "") {
			t.Errorf("%+v: fenced %t, srvr says %q", c.stats, fenced, archive)
		}
	}
}

// srvr and stat name certificates that end soon, as the program that embeds the server knows them.
func TestCertificates_Words(t *testing.T) {
	for warning, want := range map[string]string{"": "", "a.pem ends": "Certificates: a.pem ends\n"} {
		certificates := func() server.Certificates { return server.Certificates{Warning: warning} }
		s := start(t, server.Config{Words: []string{"stat"}, Certificates: certificates})
		for _, word := range []string{"srvr", "stat"} {
			if _, got, _ := strings.Cut(ask(t, s.ConnectString(), word), "Node count: 5\n"); got != want {
				t.Errorf("%s ends with %q, want %q", word, got, want)
			}
		}
	}
}

// The members that take turns are counted whether a leader is known or not.
func TestLogPosition_WithoutALeader(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.startAll()
		e.awaitVoters(1, 2, 3)
		e.m(2).stop()
		e.m(3).stop()
		e.awaits("no leader", func() bool { return e.m(1).s.Status().Leader == 0 })
		if p := e.m(1).s.Backups().LogPosition(); p.Members != 3 || p.Turn != 0 {
			t.Errorf("member %d of %d, want 0 of 3", p.Turn, p.Members)
		}
	})
}
