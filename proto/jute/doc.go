// Package jute is the encoding of the ZooKeeper protocol: bool, int, long, buffer, ustring and vector, all big-endian,
// with no framing and no tags. It knows the primitives and nothing of ZooKeeper.
//
// Encoding appends to a byte slice that the caller owns, in the manner of strconv.AppendInt. Decoding is a [Decoder] over
// a byte slice with a sticky error: read all fields, then ask Err once.
//
// Invariants, whatever the input:
//   - J1 decoding never panics and never reads outside the slice;
//   - J2 no length or count sizes an allocation before it was compared with the bytes that are left;
//   - J3 null and empty stay apart for buffers (nil and a non-nil empty slice), strings ([Decoder.NullString]) and vectors
//     ([Decoder.Count] is -1 and 0);
//   - J4 after the first error every read returns the zero value and the error stays.
package jute
