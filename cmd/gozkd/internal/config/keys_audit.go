package config

import (
	"path/filepath"
	"strings"
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
var znodeList = kind{
	allowed: "paths of znodes, which begin with /, separated by commas",
	parse: func(v string) (string, bool) {
		paths := splitList(v)
		for _, p := range paths {
			if !strings.HasPrefix(p, "/") {
				return "", false
			}
		}
		return strings.Join(paths, ","), len(paths) > 0
	},
}

var auditKeys = []key{
	{name: "audit.enable", kind: boolean, def: "false", status: works, note: "the [audit log](monitoring.md#the-audit-log)",
		field: func(c *Config) any { return &c.Audit.Enabled }},
	{name: "audit.impl.class", kind: anything, status: harmless, note: "use gozkd.audit.*"},
	{name: "gozkd.audit.format", kind: oneOf(AuditJSON, AuditZooKeeper), def: AuditJSON, status: works, note: "zookeeper: ZooKeeper's line, for ZooKeeper's events only",
		field: func(c *Config) any { return &c.Audit.Format }},
	{name: "gozkd.audit.file", kind: text, def: "`audit.log` in dataDir", status: works, note: "file of the audit log; `-`: standard error. Opened again on SIGHUP",
		field: func(c *Config) any { return &c.Audit.File }},
	{name: "gozkd.audit.maxSizeMB", kind: integer(1, 1<<20), def: "10", status: works, note: "MiB above which a new file is begun",
		field: func(c *Config) any { return &c.Audit.MaxSizeMB }},
	{name: "gozkd.audit.maxFiles", kind: integer(0, maxInt), def: "10", status: works, note: "renamed files that are kept; 0: all",
		field: func(c *Config) any { return &c.Audit.MaxFiles }},
	{name: "gozkd.audit.block", kind: boolean, def: "false", status: works, note: "clients wait while the log cannot be written; false: events are dropped",
		field: func(c *Config) any { return &c.Audit.Block }},
	{name: "gozkd.audit.reads", kind: znodeList, status: works, note: "also log reads at and below these znodes",
		field: func(c *Config) any { return &c.Server.AuditReads }},
	{name: "auditlog.*", kind: anything, status: harmless, note: "use gozkd.audit.file"},
	{name: "audit.logger", kind: anything, status: harmless, note: "use gozkd.audit.file"},
}
