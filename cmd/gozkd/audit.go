package main

import (
	"io"

	"github.com/hashicorp/go-hclog"
	"gopkg.in/natefinch/lumberjack.v2"

	"github.com/gozkd/gozkd/audit"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
)

// auditTrail is the audit log of the process; nil: there is none.
type auditTrail struct {
	log  *audit.Log
	file *lumberjack.Logger // nil: standard error
}

// openAudit opens the configured audit log. The file is opened by the first event.
func openAudit(c config.Config, stderr io.Writer, log hclog.Logger) *auditTrail {
	if !c.Audit.Enabled {
		return nil
	}
	t := new(auditTrail)
	name, out := c.AuditFile(), stderr
	if name != "-" {
		t.file = &lumberjack.Logger{Filename: name, MaxSize: c.Audit.MaxSizeMB, MaxBackups: c.Audit.MaxFiles, LocalTime: true}
		out = t.file
	}
	o := audit.Options{Block: c.Audit.Block, Failed: func(err error) {
		log.Error("the audit log cannot be written; make room on its disk, or correct gozkd.audit.file. Until then "+
			map[bool]string{false: "its events are lost", true: "clients wait (gozkd.audit.block)"}[c.Audit.Block], "file", name, "error", err)
	}}
	if c.Audit.Format == config.AuditZooKeeper {
		o.Format = audit.ZooKeeper
	}
	t.log = audit.New(out, o)
	log.Info("audit log", "file", name, "format", c.Audit.Format)
	return t
}

// sink returns the log for the server's Config, or nil.
func (t *auditTrail) sink() audit.Sink {
	if t == nil {
		return nil
	}
	return t.log
}

// reopen makes the next event open the file again, which another program may have renamed.
func (t *auditTrail) reopen() error {
	if t == nil || t.file == nil {
		return nil
	}
	return t.file.Close()
}

// close writes what is left. The servers are closed before.
func (t *auditTrail) close() error {
	if t == nil {
		return nil
	}
	t.log.Close()
	return t.reopen()
}
