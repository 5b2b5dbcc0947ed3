package main

import (
	"github.com/gozkd/gozkd/internal/backup"
	"github.com/gozkd/gozkd/internal/program"
	"github.com/gozkd/gozkd/internal/shell"
	"github.com/gozkd/gozkd/internal/status"
	"github.com/gozkd/gozkd/internal/top"
)

// commands are those beside serve and check-config, by the first word of the command line.
var commands = map[string]program.Main{
	"backup":  backup.Backup,
	"inspect": backup.Inspect,
	"restore": backup.Restore,
	"cli":     shell.Main,
	"ruok":    status.Ruok,
	"status":  status.Main,
	"top":     top.Main,
}
