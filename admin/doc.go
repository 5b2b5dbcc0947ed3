// Package admin serves ZooKeeper's admin commands over HTTP: the facts that the server tells about
// itself, as JSON, under the paths, names and keys of ZooKeeper's AdminServer. The package opens no
// port: the program that embeds the server mounts the handler.
//
// The table of commands, and where they differ from ZooKeeper's, is in
// docs/reference/monitoring.md.
package admin
