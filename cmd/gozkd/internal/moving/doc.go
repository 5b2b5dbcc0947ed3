// Package moving implements `gozkd import`, which founds an ensemble with the state in ZooKeeper's
// data directories, `gozkd migrate`, which does so while ZooKeeper runs, and `gozkd export
// --zookeeper`, which writes a snapshot that ZooKeeper starts from.
// docs/adr/0009-state-moves-in-and-out-of-zookeeper.md says which state becomes what, and
// docs/adr/0011-state-moves-while-zookeeper-runs.md how it is followed; docs/guide/moving.md is for
// operators.
//
// A directory of ZooKeeper is only read, and a directory with data is never written to.
package moving
