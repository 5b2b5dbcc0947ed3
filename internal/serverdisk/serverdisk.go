// Package serverdisk gives tests the file systems of a server.Config, which are not in its API.
package serverdisk

import "github.com/gozkd/gozkd/internal/vfs"

// Log returns the file system of LogDir in a *server.Config.
var Log func(config any) *vfs.FS

// Data returns the file system of Dir in a *server.Config.
var Data func(config any) *vfs.FS
