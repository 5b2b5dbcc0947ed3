// Package admin serves ZooKeeper's admin commands over HTTP: what the server knows of itself, as JSON, under the paths, names and
// keys of ZooKeeper's AdminServer. It opens no port: the handler is mounted where the program that embeds the server wants it.
//
// The table of commands, and where they differ from ZooKeeper's, is in docs/reference/monitoring.md.
package admin
