package datatree

import (
	"github.com/gozkd/gozkd/internal/serverlist"
	"github.com/gozkd/gozkd/proto"
)

// Pending is a change of the ensemble that was asked for and checked, and that raft is to bring about. It ends with a
// configDone.
type Pending struct {
	Serial  proto.Zxid // of the reconfig or initConfig that asked for it
	Members serverlist.Set
}

// Config returns the members of the ensemble and the zxid of the configDone that made them so. A standalone server has none,
// and zxid 0.
//
// They are kept apart from the text of /zookeeper/config, which a superuser may overwrite: here as in ZooKeeper that misleads
// readers until the next reconfig, and changes nothing else.
func (t *Tree) Config() (serverlist.Set, proto.Zxid) { return t.ensemble.current, t.ensemble.version }

// PendingConfig returns the change that is under way, or false. Whoever leads works on it, also one who finds it in a
// checkpoint: it does not end with the leader that proposed it.
func (t *Tree) PendingConfig() (Pending, bool) {
	return t.ensemble.pending, t.ensemble.pending.Serial != 0
}

// ensembleRecord is what stands in a checkpoint of the members. It is immutable. Of a standalone server there is none in the
// checkpoint, and an empty one in the tree.
type ensembleRecord struct {
	version proto.Zxid // 0: no current members
	current serverlist.Set
	pending Pending // Serial 0: none
	digest  uint64  // 0 if empty
}

func (e *ensembleRecord) empty() bool { return e.version == 0 && e.pending.Serial == 0 }

// both returns the current members, in the form of Pending, and those pending.
func (e *ensembleRecord) both() [2]Pending { return [2]Pending{{e.version, e.current}, e.pending} }

// setEnsemble replaces the record; rec's digest need not be set.
func (t *Tree) setEnsemble(rec ensembleRecord) {
	old := t.ensemble.digest
	t.ensemble = t.sealEnsemble(rec)
	t.digest += t.ensemble.digest - old
	if t.dirty != nil {
		t.dirty.ensemble = t.ensemble
	}
}
