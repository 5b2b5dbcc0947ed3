// Package probe asks a server for the answer to a four-letter word, and reads what the words say: those of gozkd and of
// Apache ZooKeeper 3.5 and later alike.
//
// Asking is in Asker. The readers are pure; they take an answer as it came and keep what they understand, since releases differ
// in which lines they have. Formats: docs/reference/monitoring.md.
package probe
