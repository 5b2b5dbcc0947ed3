// Package server starts the servers for compatibility tests and benchmarks: Apache ZooKeeper and
// gozkd, each as a process of its own on a loopback port with its own data directory.
//
// A Process answers clients when its start function returns. The caller owns it and ends it with
// Stop or Kill.
package server
