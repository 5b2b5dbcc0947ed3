package datatree

import "iter"

// Collectable returns at most limit znodes that may be deleted now: TTL znodes without
// children that were not written for longer than their time to live, and containers that have lost
// their last child or, unless neverUsedMs is 0, have had none for longer than that. The caller
// proposes a deleteContainer for each, which checks again. Source: ContainerManager.
func (st *state) Collectable(nowMs, neverUsedMs int64, limit int) []DeleteContainerBody {
	var found []DeleteContainerBody
	for _, id := range st.collectable {
		if len(found) >= limit {
			break
		}
		n := st.at(id)
		if n.dir != 0 {
			continue
		}
		r := n.record()
		used := r.cversion != 0
		unused := neverUsedMs != 0 && nowMs-r.mtimeMs > neverUsedMs
		if r.kind == container && (used || unused) || r.expired(nowMs) {
			found = append(found, DeleteContainerBody{n.path(), r.czxid})
		}
	}
	return found
}

func (r *record) expired(nowMs int64) bool {
	return r.kind == ttl && nowMs-r.mtimeMs > int64(r.owner)
}

// ContainersAndTTLs returns the paths of the containers and TTL znodes, unsorted, each with its
// time to live in milliseconds, 0 for a container. Clients cannot ask for this: to them the Stat of
// such a znode looks like that of a persistent znode.
func (st *state) ContainersAndTTLs() iter.Seq2[string, int64] {
	return func(yield func(string, int64) bool) {
		for _, id := range st.collectable {
			n := st.at(id)
			if r := n.record(); !yield(n.path(), int64(r.owner)) { // 0 for a container
				return
			}
		}
	}
}
