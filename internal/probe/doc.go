// Package probe asks servers four-letter words and parses the answers of gozkd and of Apache
// ZooKeeper 3.5 and later.
//
// An Asker asks. The parsers are pure functions; they ignore lines that they do not know, because
// releases differ. Formats: docs/reference/monitoring.md.
package probe
