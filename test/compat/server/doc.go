// Package server starts the servers that compatibility tests and benchmarks talk to: a real Apache ZooKeeper and
// gozkd, each as a process of its own on a loopback port, with a data directory of its own.
//
// A Process answers clients when its start function returns. The caller owns it and ends it with Stop or Kill.
package server
