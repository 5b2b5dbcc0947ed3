// Package archive keeps the replicated log of an ensemble in a directory or in object storage, so
// that any moment can be restored. docs/adr/0010-archive.md has the reasons.
//
// A Shipper writes, in the process of a server. An Archive reads.
//
// # Objects
//
// All names of an ensemble begin with its id in 16 hexadecimal digits. Numbers in names have
// leading zeros, so names sort in the order of the log, and a listing says everything.
//
//	ID/log/FIRST-LAST-PREV-CHAIN-MS
//	    the entries FIRST to LAST (20 digits)
//	ID/base/INDEX-CHAIN-ZXID-MS-WRITER/PART
//	    a piece of at most 8 MiB of the checkpoint file with the state after entry INDEX; the last
//	    piece is called PART.last
//	ID/verified/MS-INDEX-RESULT
//	    the report of the last verification, as JSON: when it began, the last entry, "sound" or
//	    "failed"
//	ID/promoted/MS-WRITER
//	    a fence: a standby was promoted at MS, so the ensemble archives no more; see fence.go
//
// MS is the time of the last batch (Unix milliseconds, 13 digits; 0: none), ZXID the last change of
// the base in 16 hexadecimal digits, WRITER 8 random hexadecimal digits. PREV and CHAIN are 32
// hexadecimal digits: the chain before FIRST, and after LAST or INDEX.
//
// The chain after an entry is the first 16 bytes of SHA-256 over the chain before it, its index (8
// bytes, big-endian) and its data. Where a history begins, it is the first 16 bytes of SHA-256 over
// "gozkd archive 1", the ensemble, the index and the term of the base's last entry (8 bytes each,
// big-endian). A member that continues another's objects compares the last entry with its own log:
// logs with an equal (index, term) are equal up to it. If no object ends at the last base, the
// member compares the time in the base's name with that of its own entry.
//
// Bytes of every object; integers are little-endian:
//
//	offset  bytes
//	     0      8  magic "gozkdARC"
//	     8      4  version 1
//	    12      4  kind: 1 log, 2 base
//	    16      8  ensemble
//	    24      8  log: index of the first entry. base: INDEX
//	    32      8  log: index of the last entry. base: number of the piece, from 0
//	    40     16  previous chain; of a base 0
//	    56     16  chain
//	    72      8  size of the body before it was deflated
//	    80      4  CRC-32C of bytes 0 to 79 and the body
//	    84         the body, deflated (RFC 1951). log: per entry a uvarint length and that many bytes,
//	               as in the WAL (docs/reference/formats.md, "Log entry"). base: a piece of the file
//
// # Invariants
//
//   - A1 Every object is immutable and checks itself: its name follows from its content, and a
//     second writer of the same name writes the same entries. A base has a folder that only its
//     writer writes to.
//   - A2 What a listing shows as an unbroken chain from a complete base restores to exactly the
//     state after its last entry.
//   - A3 Only applied entries are written, so nothing that is not committed.
//   - A4 A gap is detected and shown, never bridged: an object continues a chain only if its first
//     index and previous chain are those after the object before it.
//   - A5 The server never waits for the writer, which reads the log in memory by reference.
//   - A6 An object is deleted only if its entries are in another object that was read back
//     (keephouse.go), or if it is older than the retention.
//   - A7 A record of a verification is no part of the history. The next record is written before
//     the previous one is deleted, so the last result is always listed.
package archive
