// Package serverdisk gives tests the file systems of a server.Config, which are not in its API.
package serverdisk

import "github.com/gozkd/gozkd/internal/vfs"

// Log and Data return the file systems of LogDir and Dir in a *server.Config.
var Log, Data func(config any) *vfs.FS
