package datatree

import "iter"

// Collectable returns paths of at most limit znodes that may be collected now: TTL znodes without children that were
// not written for longer than their time to live, and containers that lost their last child or, unless neverUsedMs
// is 0, had none for longer than that. The caller proposes a deleteContainer for each, which looks again.
// Source: ContainerManager.
func (t *Tree) Collectable(nowMs, neverUsedMs int64, limit int) []string {
	var paths []string
	for _, id := range t.collectable {
		if len(paths) >= limit {
			break
		}
		n := t.at(id)
		if n.dir != 0 {
			continue
		}
		r := n.record()
		used := r.cversion != 0
		unused := neverUsedMs != 0 && nowMs-r.mtimeMs > neverUsedMs
		if r.kind == container && (used || unused) || r.expired(nowMs) {
			paths = append(paths, n.path())
		}
	}
	return paths
}

// expired reports whether r has a time to live and it is over.
func (r *record) expired(nowMs int64) bool {
	return r.kind == ttl && nowMs-r.mtimeMs > int64(r.owner)
}

// ContainersAndTTLs goes through the znodes that go away by themselves, in no order: the path, and the time to live in milliseconds, or 0 of a
// container. No client can ask for that: the Stat of such a znode is that of a persistent one.
func (t *Tree) ContainersAndTTLs() iter.Seq2[string, int64] {
	return func(yield func(string, int64) bool) {
		for _, id := range t.collectable {
			n := t.at(id)
			if r := n.record(); !yield(n.path(), int64(r.owner)) { // of a container it is 0
				return
			}
		}
	}
}
