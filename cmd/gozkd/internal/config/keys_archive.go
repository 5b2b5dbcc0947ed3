package config

import (
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive/store"
)

// Standby is an archive to follow, and where promote would found: docs/adr/0019-warm-standby.md.
type Standby struct{ URL, Ensemble, Into string }

// Archive holds the keys of the archive of the log, except for Config.Server.ArchiveBytes.
type Archive struct {
	// URL is the place of the archive; empty: there is none.
	URL string
	// Interval, BaseInterval and Retention are those of archive.Config.
	Interval, BaseInterval, Retention time.Duration
}

var archiveURL = kind{
	allowed: "a URL, file:///DIRECTORY or s3://BUCKET/PREFIX", url: true,
	parse: func(v string) (string, bool) {
		_, err := store.Open(v, func(string) string { return "" })
		return v, err == nil
	},
}

func archiveKeys(c *Config) []key {
	return []key{
		row("gozkd.archive.url", archiveURL, "", &c.Archive.URL,
			"place of the [archive](../guide/backup.md), the same on all servers"),
		row("gozkd.archive.intervalMs", property32(100, 3_600_000), "3000", &c.Archive.Interval,
			"ms until a write must be in the archive"),
		row("gozkd.archive.baseHours", integer(1, 8760), "24", units(&c.Archive.BaseInterval, time.Hour),
			"hours between complete states in the archive; also after 1 GiB of log"),
		row("gozkd.archive.retentionDays", integer(0, 36500), "0", units(&c.Archive.Retention, 24*time.Hour),
			"days for which every moment can be restored; 0: all"),
		row("gozkd.archive.bufferMB", integer(1, 1<<10), "64", units(&c.Server.ArchiveBytes, 1<<20),
			"MiB of log kept while the archive cannot be written; above it moments are lost"),
	}
}
