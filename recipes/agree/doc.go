// Package agree is how several come to terms: whether something is done by all or by none, who meets whom, and who does which part of the work.
//
//	Transaction   two-phase commit                  ZooKeeper's recipe of that name; neither Curator nor kazoo has it
//	Rendezvous    who comes first says where it is  ZooKeeper's paper; neither
//	Partitioner   a set is divided among members    kazoo: SetPartitioner
//
// Invariants:
//   - A1 a transaction is decided once, and all who ask get the same decision;
//   - A2 it is committed only if all sites have voted for it, each once;
//   - A3 it is decided whoever dies, as long as one of those who take part goes on, and a site that has not voted is not waited for when it is gone;
//   - A4 it is not forgotten before all sites have said that they know that it was committed: what is not there was aborted, or is over;
//   - A5 those who meet have the same host while their contexts are alive, up to the moment that a change needs to reach them;
//   - A6 no part of a set is in two shares whose contexts are alive;
//   - A7 when the members have not changed for long enough, and let go of what they have to, every part is in a share.
//
// docs/internals/recipes.md says why they hold, and what each costs.
package agree
