package server_test

import (
	"testing"
	"time"

	"github.com/gozkd/gozkd/server"
)

// mntr shows when the archive was verified, and whether that failed.
func TestArchiveStats_Verification(t *testing.T) {
	for _, c := range []struct {
		stats      server.ArchiveStats
		at, failed string
	}{
		{server.ArchiveStats{}, "0", "0"},
		{server.ArchiveStats{Verified: time.Unix(1e9, 5)}, "1000000000", "0"},
		{server.ArchiveStats{Verified: time.Unix(1e9, 0), VerifyFailed: true}, "1000000000", "1"},
	} {
		cfg := server.Config{Words: []string{"mntr"}, ArchiveStats: func() server.ArchiveStats { return c.stats }}
		got := monitor(t, start(t, cfg).ConnectString())
		if at, failed := got["zk_gozkd_archive_verified_seconds"], got["zk_gozkd_archive_verify_failed"]; at != c.at || failed != c.failed {
			t.Errorf("%+v: at %q, failed %q", c.stats, at, failed)
		}
	}
}
