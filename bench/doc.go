// Command bench measures gozkd and Apache ZooKeeper side by side on one machine and prints what it found as Markdown.
//
// It starts the servers itself, speaks the client protocol through package proto, and alternates between the servers,
// so that a neighbour's noise hits both. It needs Linux: epoll, fdatasync and /proc are what it measures with.
// docs/quality/performance.md says what each figure means.
//
// It exits with 1 if something could not be measured, and with 2 on wrong usage.
package main
