// Package shared has values that many share: numbers and bytes that are changed atomically, numbers and names that one holds at a time, and
// leases by the clock on the wall.
//
//	Value          bytes                                      Curator: DistributedAtomicValue, SharedValue
//	Number         NewLong, NewInt, NewKazooInt, NewKazooFloat  Curator: DistributedAtomicLong, -Integer, SharedCount; kazoo: Counter
//	IDs            numbers that are handed out once           Curator: CachedAtomicLong
//	Names          names and small numbers that one has       neither
//	Lease          until a time of day                        kazoo: NonBlockingLease, MultiNonBlockingLease
//
// Invariants:
//   - S1 a change that is reported as done was done once, on the value that it says it found; one that is reported as failed was not
//     done and will not be, unless errors.Is(err, recipes.ErrOutcomeUnknown);
//   - S2 who waits for changes sees the last one;
//   - S3 IDs hands out no number twice;
//   - S4 no name is held by two whose contexts are alive;
//   - S5 a lease is not given to another before its end, by the clock of who takes it.
//
// docs/internals/recipes.md says why they hold, and what each costs.
package shared
