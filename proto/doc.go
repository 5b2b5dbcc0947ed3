// Package proto is the vocabulary of ZooKeeper: zxids, session ids, the table of operations, error
// codes, events, and every record of the client protocol from 3.4 to 3.10.
//
// Each record has Append, which appends its jute encoding to a slice in the manner of
// strconv.AppendInt, and Decode, which reads it from a [jute.Decoder], where errors stay. Servers,
// clients and tests use the same records. There is no reflection.
//
// Byte slices of a decoded record share memory with the decoder's input; strings do only if the
// decoder aliases strings. A nil byte slice is null, an empty slice is empty: the protocol
// distinguishes them.
//
// The package has no state and checks no meaning. A path is any string here; see [ValidatePath].
package proto
