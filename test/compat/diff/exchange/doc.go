// Package exchange is shared by the differential test and the recorded exchanges: a [Sequence] is
// what several clients send, a [Player] sends it to a server, a [Transcript] is what came back, and
// [Compare] compares two transcripts of a sequence field by field.
//
// Servers choose zxids, times, session ids and passwords, so their replies cannot be equal byte by
// byte. Compare reads every reply as fields and compares each by its kind: zxids must be in the
// same order and equal in the same places, times must belong to zxids, session ids and passwords
// must be those of the same session, unordered lists are compared as sets, and everything else must
// be equal. Further allowed deviations are in [Differences] and in docs/reference/differences.md.
package exchange
