package zkdata

import (
	"context"
	"fmt"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/zkfiles"
)

// HoldsZooKeeper reports whether a directory, or version-2 in it, has snapshots or logs of
// ZooKeeper.
func HoldsZooKeeper(dir string) bool {
	snapshots, _ := list(versioned(dir), "snapshot.") // what cannot be read holds none
	logs, _ := list(versioned(dir), "log.")
	return len(snapshots)+len(logs) > 0
}

// ReadDirectory returns the state of a ZooKeeper server, as an import would, and notes on omitted
// parts. logDir "" means dir.
func ReadDirectory(ctx context.Context, dir, logDir string) (*datatree.Tree, []string, error) {
	d, err := directoryAt(dir, logDir)
	if err != nil {
		return nil, nil, err
	}
	l, err := Load(ctx, d, Options{})
	if err != nil {
		return nil, nil, err
	}
	var notes []string
	for _, s := range l.Unfinished {
		notes = append(notes, s+": left out: "+errUnfinished.Error())
	}
	return l.Tree, append(notes, l.Torn...), nil
}

// ReadSnapshot returns the tree of a snapshot. If the snapshot was written under load, the tree
// mixes several moments, and may have ephemerals without a session.
func ReadSnapshot(ctx context.Context, path string) (*datatree.Tree, error) {
	l := &loader{ctx: ctx}
	err := l.snapshot(File{Path: path})
	if l.replay == nil {
		return nil, err
	}
	return l.replay.Tree(), err
}

// ReadLogs calls f with the transactions of a log, or of all logs in a directory, until f returns
// false. It returns notes on incomplete records.
func ReadLogs(path string, f func(*zkfiles.Record) bool) (notes []string, err error) {
	logs := &logFiles{files: []File{{Path: path}}}
	if isDir(path) {
		if logs.files, err = list(versioned(path), "log."); err != nil {
			return nil, err
		}
	}
	for r, err := range logs.records() {
		if err != nil {
			return logs.torn, err
		}
		if !f(r) {
			break
		}
	}
	return logs.torn, nil
}

// Verify reads a snapshot and compares it with the tree that it is of.
func Verify(ctx context.Context, path string, tree *datatree.Tree) error {
	l := &loader{ctx: ctx}
	if err := l.snapshot(File{Path: path, Zxid: tree.LastZxid()}); err != nil {
		return err
	}
	got := l.replay.Tree()
	if got.NumZnodes() != tree.NumZnodes() || got.NumSessions() != tree.NumSessions() || got.NumEphemerals() != tree.NumEphemerals() {
		return fmt.Errorf("it has %d znodes, %d ephemerals and %d sessions, want %d, %d and %d", got.NumZnodes(), got.NumEphemerals(), got.NumSessions(),
			tree.NumZnodes(), tree.NumEphemerals(), tree.NumSessions())
	}
	if want := datatree.NewReplay(tree).Digest(); l.replay.Digest() != want {
		return fmt.Errorf("its digest is %#x, want %#x", l.replay.Digest(), want)
	}
	return nil
}
