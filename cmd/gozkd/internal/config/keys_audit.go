package config

import (
	"path/filepath"
	"strings"

	"github.com/gozkd/gozkd/proto"
)

// Audit holds the keys of the audit log.
type Audit struct {
	Enabled bool
	// Format is one of the formats below, File the file, or "-" for standard error.
	Format, File string
	// MaxSizeMB is the size at which the file is rotated, MaxFiles how many rotated files are kept.
	MaxSizeMB, MaxFiles int
	// Block makes clients wait rather than dropping events.
	Block bool
}

// Values of Audit.Format.
const (
	AuditJSON      = "json"
	AuditZooKeeper = "zookeeper"
)

// AuditFile returns the file of the audit log, or "-" for standard error.
func (c *Config) AuditFile() string {
	switch {
	case c.Audit.File != "":
		return c.Audit.File
	case c.Server.Dir == "":
		return "-"
	}
	return filepath.Join(c.Server.Dir, "audit.log")
}

// znodeList is a comma-separated list of paths.
var znodeList = listOf("paths of znodes, which begin with /, separated by commas", func(path string) bool {
	return path == "/" || proto.ValidatePath(strings.TrimSuffix(path, "/")) == nil
})

func auditKeys(c *Config) []key {
	return []key{
		row("audit.enable", boolean, "false", &c.Audit.Enabled, "the [audit log](monitoring.md#the-audit-log)"),
		none("audit.impl.class", anything, "", "use gozkd.audit.*"),
		row("gozkd.audit.format", oneOf(AuditJSON, AuditZooKeeper), AuditJSON, &c.Audit.Format,
			"zookeeper: ZooKeeper's line, for ZooKeeper's events only"),
		row("gozkd.audit.file", text, "`audit.log` in dataDir", &c.Audit.File,
			"file of the audit log; `-`: standard error. Opened again on SIGHUP; a missing directory is made"),
		row("gozkd.audit.maxSizeMB", integer(1, 1<<20), "10", &c.Audit.MaxSizeMB,
			"MiB above which a new file is begun"),
		row("gozkd.audit.maxFiles", integer(0, maxInt), "10", &c.Audit.MaxFiles, "renamed files that are kept; 0: all"),
		row("gozkd.audit.block", strict, "false", &c.Audit.Block,
			"clients wait while the log cannot be written; false: events are dropped"),
		row("gozkd.audit.reads", znodeList, "", &c.Server.AuditReads, "also log reads at and below these znodes"),
		none("auditlog.*", anything, "", "use gozkd.audit.file"),
		none("audit.logger", anything, "", "use gozkd.audit.file"),
	}
}
