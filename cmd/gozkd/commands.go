package main

import (
	"github.com/gozkd/gozkd/internal/program"
	"github.com/gozkd/gozkd/internal/shell"
	"github.com/gozkd/gozkd/internal/status"
)

// commands are those beside serve and check-config, by the first word of the command line.
var commands = map[string]program.Main{
	"cli":    shell.Main,
	"ruok":   status.Ruok,
	"status": status.Main,
}
