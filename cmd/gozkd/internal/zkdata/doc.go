// Package zkdata reads the data directories of ZooKeeper servers: it finds snapshots and logs,
// removes their compression, and replays them. docs/adr/0009-state-moves-in-and-out-of-zookeeper.md
// has the rules.
//
// Files are only read.
package zkdata
