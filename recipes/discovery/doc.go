// Package discovery lets services find each other. An instance registers under the name of its
// service; clients ask for the instances, or follow them in a cache and pick one. The znodes and
// their JSON are those of Curator's curator-x-discovery, which Spring Cloud Zookeeper uses too, so
// that Go and Java find each other.
//
// When the session ends, an instance is registered again in the next session.
//
// Invariants:
//   - D1 A registered instance exists once, and can be found again after every failure, as last
//     updated, until Close.
//   - D2 When Close has returned nil, the instance is gone, even if an answer was lost.
//   - D3 Of two processes that register the same service and id, the later has the znode. The other
//     waits, and has the znode again when the later is gone.
//   - D4 Everything that Curator writes can be read, unknown fields included, and everything
//     written here is what Curator would write.
//   - D5 Soon after the last failure, Instances and a Cache show the registered instances.
//   - D6 A Provider never returns an instance that is missing from its Cache, disabled, or down by
//     its DownPolicy.
package discovery
