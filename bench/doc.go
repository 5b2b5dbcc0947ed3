//go:build linux

// Command bench measures gozkd and Apache ZooKeeper side by side on the same machine and prints the
// figures as Markdown.
//
// The program starts the servers, speaks the client protocol through package proto, and alternates
// between the servers, so that other load on the machine affects both. It needs Linux: epoll,
// fdatasync and /proc. docs/quality/performance.md explains the figures.
//
// Exit status: 1 if something could not be measured, 2 for wrong usage.
package main
