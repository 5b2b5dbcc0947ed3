// Package meter counts and measures the work of a server: requests, replies, connections,
// elections, the log, and a sample of the paths that clients ask for. The package receives events
// and knows nothing of the server that they come from.
//
// A Meter has a counter for each Event and a histogram for each Measure. An event or a measure is a
// constant and a row with its name, so that each counter is also shown and reset. The types
// with rules of their own are SlowLog, HotSampler and the bounded list of namespaces.
//
// A Meter and its parts are safe for concurrent use. Two types collect before they count, so that
// each counter that all connections share is touched once for many requests: a BatchStats belongs
// to a burst of requests or to the goroutine that applies, and an ApplyTrace to that goroutine.
// Neither is safe for concurrent use. Recording allocates nothing, apart from the buckets of a
// histogram with its first value.
package meter
