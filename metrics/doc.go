// Package metrics shows what a server knows of itself to Prometheus, under ZooKeeper's names and types, so that dashboards and
// alert rules written for ZooKeeper find what they ask for. It has no registry and no HTTP endpoint of its own: both are the
// program's that embeds the server.
//
// The table of metrics is in docs/reference/monitoring.md.
package metrics
