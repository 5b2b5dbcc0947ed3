// Package jute is the encoding of the ZooKeeper protocol: bool, int, long, buffer, ustring and
// vector, all big-endian, without framing and tags. It knows nothing of ZooKeeper's records.
//
// Encoding appends to a byte slice of the caller, in the manner of strconv.AppendInt. Decoding uses
// a [Decoder] over a byte slice, which keeps the first error: read all fields, then check Err once.
//
// Invariants for every input:
//   - J1 decoding never panics and never reads outside the slice;
//   - J2 no length or count sizes an allocation before it is compared with the remaining bytes;
//   - J3 null and empty differ for buffers (nil and a non-nil empty slice), strings
//     ([Decoder.NullString]) and vectors ([Decoder.Count] is -1 and 0);
//   - J4 after the first error every read returns the zero value, and the error stays.
package jute
