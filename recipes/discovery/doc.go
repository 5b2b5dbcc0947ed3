// Package discovery lets services be found: an instance registers under the name of its service, and who needs one asks for the instances, or
// follows them in memory and picks one. The znodes and their JSON are those of Curator's curator-x-discovery, so that Java and Go find
// each other, and Spring Cloud Zookeeper too, which stands on it.
//
// Invariants:
//   - D1 what is registered can be found again after every trouble, as it was updated last, until Unregister; and is there once;
//   - D2 when Unregister has returned nil, it is gone, also if an answer was lost;
//   - D3 of two that register under one service and id, the last has it; the other waits, and has it when that one is gone;
//   - D4 what Curator writes is read whatever else it has, and what is written here is what Curator would write;
//   - D5 when trouble is over, what Instances and a Cache show is soon what is registered;
//   - D6 a Provider never gives out an instance that is not in its Cache, or disabled, or down by its DownPolicy.
//
// docs/internals/recipes.md says why they hold, what they cost, and how the JSON looks.
package discovery
