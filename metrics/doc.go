// Package metrics exports the values of a server to Prometheus under ZooKeeper's names and types,
// so that dashboards and alert rules written for ZooKeeper work. The package has no registry and no
// HTTP endpoint of its own: the program that embeds the server provides both.
//
// The table of metrics is in docs/reference/monitoring.md.
package metrics
