package config

import (
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive/store"
)

// Archive holds the keys of the archive of the log, except for Config.Server.ArchiveBytes.
type Archive struct {
	// URL is the place of the archive; empty: there is none.
	URL string
	// Interval, BaseInterval and Retention are those of archive.Config.
	Interval, BaseInterval, Retention time.Duration
}

// archiveURL is the URL of an archive.
var archiveURL = kind{
	allowed: "a URL, file:///DIRECTORY or s3://BUCKET/PREFIX",
	parse: func(v string) (string, bool) {
		_, err := store.Open(v, func(string) string { return "" })
		return v, err == nil
	},
}

var archiveKeys = []key{
	{name: "gozkd.archive.url", kind: archiveURL, status: works, note: "place of the [archive](../guide/backup.md), the same on all servers", secret: true,
		field: func(c *Config) any { return &c.Archive.URL }},
	{name: "gozkd.archive.intervalMs", kind: property32(100, 3_600_000), def: "3000", status: works, note: "ms until a write must be in the archive",
		field: func(c *Config) any { return &c.Archive.Interval }},
	{name: "gozkd.archive.baseHours", kind: integer(1, 8760), def: "24", status: works, note: "hours between complete states in the archive; also after 1 GiB of log",
		field: func(c *Config) any { return units(&c.Archive.BaseInterval, time.Hour) }},
	{name: "gozkd.archive.retentionDays", kind: integer(0, 36500), def: "0", status: works, note: "days for which every moment can be restored; 0: all",
		field: func(c *Config) any { return units(&c.Archive.Retention, 24*time.Hour) }},
	{name: "gozkd.archive.bufferMB", kind: integer(1, 1<<10), def: "64", status: works, note: "MiB of log kept while the archive cannot be written; above it moments are lost",
		field: func(c *Config) any { return units(&c.Server.ArchiveBytes, 1<<20) }},
}
