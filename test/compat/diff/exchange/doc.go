// Package exchange is what the differential test and the recorded exchanges have in common: a [Sequence] says what
// several clients send, a [Player] sends it to a server, the [Transcript] is what came back, and [Compare] holds two
// transcripts of one sequence against each other, field by field.
//
// Two servers cannot answer with the same bytes, because zxids, times, session ids and passwords are theirs to choose.
// Compare reads every reply as fields and compares each by its kind: zxids must stand in the same order and be equal in
// the same places, times must belong to zxids, session ids and passwords must be those of the same session, lists
// without an order are compared as sets, and everything else must be the same. What may differ beyond that is listed,
// with its reason, in [Differences] and in docs/reference/differences.md.
package exchange
