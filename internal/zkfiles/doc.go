// Package zkfiles reads and writes the files that Apache ZooKeeper keeps its state in: snapshots
// and transaction logs, of version 3.4 to 3.9. Its learner protocol carries the same records.
// Layout: docs/adr/0009-state-moves-in-and-out-of-zookeeper.md.
//
// The package is pure: it reads from an [io.Reader] and appends to byte slices, and it knows no
// file, directory, compression, clock or goroutine.
//
// Nothing that is read is trusted:
//   - F1 reading never panics, and what it allocates is bounded by the bytes it has read, whatever lengths and
//     counts say;
//   - F2 a checksum is compared before the bytes that it covers are handed out as complete: those of
//     a log record with the record, those of a snapshot at its end ([SnapshotReader.Trailer]);
//   - F3 an error of the content wraps [ErrDamaged], or [ErrTorn] for what a crash leaves at the end
//     of a log, and names the offset.
package zkfiles

import "errors"

var (
	// ErrDamaged is wrapped by every error about the content of a file.
	ErrDamaged = errors.New("damaged")
	// ErrEnds is wrapped, beside ErrDamaged, by the error for a snapshot that ends early.
	ErrEnds = errors.New("the file ends")
	// ErrTorn is wrapped by the error for a log record that was not written to its end. Such a record
	// is expected only at the end of the last log: the server was killed while it wrote the record,
	// and acknowledged nothing of it.
	ErrTorn = errors.New("incomplete record")
)
