// Package top is gozkd top: a live view of an ensemble in a terminal, of gozkd and of Apache ZooKeeper.
//
// It is made of three parts that know nothing of each other's means. A watcher asks each member with four-letter words, in a goroutine each, and
// finds the members that were not named. An ensemble keeps what they said and makes rates of it; it is pure, the time stands in the samples. Views
// are functions from an ensemble to text: the screen, tables, JSON. See docs/reference/monitoring.md.
package top
