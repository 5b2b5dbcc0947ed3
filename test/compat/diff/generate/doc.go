// Package generate makes sequences of operations for the differential test: a pure function of a seed.
//
// Most requests are well formed and touch a handful of paths, so that they meet; a few are damaged. What a sequence never
// holds is what ZooKeeper itself answers now this way and now that, and what would end it: the rules stand where they are
// applied, with the part of the specification that they come from.
//
// The generator draws from math/rand and not from rapid: rapid shrinks the draws, which for a sequence of sixty steps on
// two servers takes far longer than leaving out steps, and its draws are biased to small values, so weights mean little.
package generate
