// Package serverdisk gives tests the file systems of a server.Config, and what it knows of the room
// on them and in memory, which are not in its API.
package serverdisk

import "github.com/gozkd/gozkd/internal/vfs"

// Log returns the file system of LogDir in a *server.Config.
var Log func(config any) *vfs.FS

// Data returns the file system of Dir in a *server.Config.
var Data func(config any) *vfs.FS

// Used returns the function, in a *server.Config, that says how many bytes of memory the server
// uses besides its state; nil: those that it does use.
var Used func(config any) *func() int64

// Free returns the function, in a *server.Config, that says how many bytes are free on the disk of
// Dir; nil: those that are free.
var Free func(config any) *func() int64
