// Package generate generates sequences of operations for the differential test: a pure function of
// a seed.
//
// Most requests are well formed and use a handful of paths, so that they interact; a few are
// damaged. Sequences avoid requests to which ZooKeeper's own reply is random or that would end it:
// the code that avoids them names ZooKeeper's class that is the reason.
//
// The generator uses math/rand, not rapid: rapid would shrink the draws, which takes far longer
// than leaving out steps when each try plays sixty steps on two servers, and its bias to small
// values distorts weights.
package generate
