package main

import (
	"github.com/gozkd/gozkd/cmd/gozkd/internal/backup"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/shell"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/status"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/top"
)

// commands are those beside serve and check-config, by the first word of the command line.
var commands = map[string]cli.Main{
	"backup":  backup.Backup,
	"inspect": backup.Inspect,
	"restore": backup.Restore,
	"cli":     shell.Main,
	"ruok":    status.Ruok,
	"status":  status.Main,
	"top":     top.Main,
}
