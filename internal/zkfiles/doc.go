// Package zkfiles reads and writes the files that Apache ZooKeeper keeps its state in: snapshots
// and transaction logs, of version 3.4 to 3.9. Its learner protocol carries the same records.
//
// The package is pure: it reads from an [io.Reader] and appends to byte slices, and it knows no
// file, directory, compression, clock or goroutine.
//
// Nothing that is read is trusted:
//   - F1 reading never panics, and what it allocates is bounded by the bytes it has read, whatever
//     lengths and counts say;
//   - F2 a checksum is compared before the bytes that it covers are handed out as complete: those
//     of a log record with the record, those of a snapshot at its end ([SnapshotReader.Trailer]);
//   - F3 an error of the content wraps [ErrDamaged], or [ErrTorn] for what a crash leaves at the
//     end of a log, and names the offset.
//
// # Layout
//
// Everything is jute: big-endian; a buffer or string is its length as an int, -1 for null, and its
// bytes. A snapshot is the file version-2/snapshot.<zxid in hex>, plain, with .gz as gzip, or with
// .snappy as blocks after the magic 82 53 4e 41 50 50 59 00 and two ints, each block with its
// length as an int:
//
//	header       int "ZKSN", int 2, long -1
//	sessions     int n, n times {long id, int timeout in ms}
//	ACLs         int n, n times {long key, int m, m times {int permissions, string scheme, string id}}
//	znodes       {string path, buffer data, long ACL key, czxid, mzxid, ctime, mtime (long),
//	             version, cversion, aversion (int), owner, pzxid (long)}, parents first, the root
//	             as ""; the path "/" ends them. ACL key -1: open to all
//	seal         long Adler-32 of everything before, string "/"
//	digest       since 3.6: long zxid, int version 2, long value; then another seal
//	last zxid    since 3.9: long; then another seal
//
// A log is the file version-2/log.<zxid of its first record in hex>: int "ZKLG", int 2, long;
// records {long Adler-32 of the entry, buffer entry, "B"}; zeros up to the preallocated size. An
// entry is {long session, int cxid, long zxid, long time in ms, int type}, the transaction ([Txn]),
// and since 3.6 the digest after it {int version, long value}.
//
// The digest, version 2, is the sum modulo 2^64 over all znodes, except those below /zookeeper/, of
// the CRC-32 of path ("" for the root), data, czxid, mzxid, pzxid, ctime, mtime, version, cversion,
// aversion and owner.
package zkfiles

import "errors"

var (
	// ErrDamaged is wrapped by every error about the content of a file.
	ErrDamaged = errors.New("damaged")
	// ErrEnds is wrapped, beside ErrDamaged, by the error for a snapshot that ends early.
	ErrEnds = errors.New("the file ends")
	// ErrTorn is wrapped by the error for a log record that was not written to its end. Such a
	// record is expected only at the end of the last log: the server was killed while it wrote the
	// record, and acknowledged nothing of it.
	ErrTorn = errors.New("incomplete record")
)
