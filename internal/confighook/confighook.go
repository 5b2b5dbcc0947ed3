// Package confighook gives tests the part of a server.Config that is not in its API.
package confighook

import (
	"net"

	"github.com/gozkd/gozkd/internal/vfs"
)

// Hooks replace what a server uses of the machine.
type Hooks struct {
	LogFS, DataFS vfs.FS           // of LogDir and Dir, except backups
	Memory        int64            // bytes that bound the log in memory; 0: those of the machine
	MemoryUsed    func() int64     // bytes besides the state; nil: those that are used
	Disk          func() vfs.Space // of Dir; nil: that of the system
	// Attached is called when a session is attached to a client's connection, before the client is
	// told, and with session 0 before the reply that ends the connection. nil: not called.
	Attached func(nc net.Conn, session int64)
	Listen   func(address string) (net.Listener, error) // for clients; nil: TCP
}

// Of returns the hooks in a *server.Config.
var Of func(config any) *Hooks
