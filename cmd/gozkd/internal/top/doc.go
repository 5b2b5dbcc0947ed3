// Package top is gozkd top: a live view of an ensemble of gozkd or Apache ZooKeeper in a terminal.
//
// The package has three independent parts. A watcher asks each member four-letter words, each
// member in a goroutine of its own, and discovers members. An ensemble keeps the answers and
// computes rates; it is pure, and samples carry the time. Views are functions from an ensemble to
// text: the screen, tables, JSON.
package top
