// Package shared has values that many processes share: numbers and bytes that change atomically,
// and leases that end by the wall clock.
//
//	Value    bytes; Curator: DistributedAtomicValue, SharedValue
//	Typed    a value of any Go type, with a Model of its data; Curator: ModeledFramework
//	Number   a number; Curator: DistributedAtomicLong, -Integer, SharedCount; kazoo: Counter
//	IDs      numbers that are handed out once; Curator: CachedAtomicLong
//	Lease    a right until a time of day; kazoo: NonBlockingLease, MultiNonBlockingLease
//
// When the session ends, values and leases stay.
//
// Invariants:
//   - S1 A change that is reported as done was applied once, to the reported value. A change that
//     is reported as failed was not applied and will not be, unless errors.Is(err,
//     recipes.ErrOutcomeUnknown).
//   - S2 A caller that waits for changes sees the latest value.
//   - S3 IDs hands out no number twice.
//   - S4 A lease is not given to another holder before its end by that holder's clock.
package shared
