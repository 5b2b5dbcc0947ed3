// Package proto is ZooKeeper's vocabulary: zxids, session ids, op codes, error codes, events, and every record of the
// client protocol from 3.4 to 3.10.
//
// Each record has Append, which appends its jute encoding to a slice in the manner of strconv.AppendInt, and Decode, which
// reads it from a [jute.Decoder]; errors stay in the decoder. Both directions exist for every record, so that a server, a
// client and a test can be written over this package. No reflection.
//
// Byte slices of a decoded record share memory with the decoder's input. Strings do only if the decoder aliases strings.
// A nil byte slice is null, an empty one is empty; the protocol keeps them apart and so do we.
//
// What it is not: it knows no state and checks no meaning. A path is any string here, see [ValidatePath].
package proto
