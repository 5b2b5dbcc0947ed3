// Package confighook gives tests the part of a server.Config that is not in its API.
package confighook

import "github.com/gozkd/gozkd/internal/vfs"

// Hooks replace what a server uses of the machine.
type Hooks struct {
	LogFS, DataFS vfs.FS       // of LogDir and Dir, except backups
	MemoryUsed    func() int64 // bytes besides the state; nil: those that are used
	DiskFree      func() int64 // bytes on the disk of Dir; nil: those that are free
}

// Of returns the hooks in a *server.Config.
var Of func(config any) *Hooks
