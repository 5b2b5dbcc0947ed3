// Package golden holds gozkd against ZooKeeper on a machine that has none: its test replays
// exchanges that were recorded from a real one (testdata, written by make golden) and compares what
// comes back as the differential test does.
package golden
