// Package golden compares gozkd with ZooKeeper on a machine that has no ZooKeeper: its test replays
// exchanges that were recorded from a real server (testdata, written by make golden) and compares
// the replies as the differential test does.
package golden
