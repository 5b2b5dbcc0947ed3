package datatree

import (
	"fmt"

	"github.com/gozkd/gozkd/internal/serverlist"
	"github.com/gozkd/gozkd/proto"
)

// Pending is an accepted change of the ensemble that raft has to carry out. A configDone ends it.
type Pending struct {
	Serial  proto.Zxid // of its reconfig or initConfig
	Members serverlist.Set
}

// Config returns the members of the ensemble and the zxid of the configDone that set them. A
// standalone server has no members, and zxid 0.
//
// They are separate from the text of /zookeeper/config, which a superuser may overwrite: as in
// ZooKeeper, that misleads readers until the next reconfig and changes nothing else.
func (st *state) Config() (serverlist.Set, proto.Zxid) {
	return st.ensemble.current, st.ensemble.version
}

// PendingConfig returns the pending change, or false. The change survives its leader: every leader
// works on it, including a leader that restored it from a checkpoint.
func (st *state) PendingConfig() (Pending, bool) {
	return st.ensemble.pending, st.ensemble.pending.Serial != 0
}

// ensembleRecord is the record of the members in a checkpoint. A standalone server has an empty
// record in the tree and no record in the checkpoint.
type ensembleRecord struct {
	version proto.Zxid // 0: no current members
	current serverlist.Set
	pending Pending // Serial 0: none
}

func (e *ensembleRecord) empty() bool { return e.version == 0 && e.pending.Serial == 0 }

// both returns the current members, in the form of Pending, and the pending ones.
func (e *ensembleRecord) both() [2]Pending { return [2]Pending{{e.version, e.current}, e.pending} }

// plausible refuses a record that no tree with that last zxid can have.
func (e *ensembleRecord) plausible(last proto.Zxid) error {
	pending := e.pending.Serial
	if e.version < 0 || max(e.version, pending) > last || pending != 0 && pending <= e.version {
		return fmt.Errorf("zxids %v %v, the last one is %v", e.version, pending, last)
	}
	for _, set := range e.both() {
		if (set.Serial == 0) != (len(set.Members.Voters()) == 0) {
			return fmt.Errorf("the members of zxid %v are %v", set.Serial, set.Members)
		}
	}
	return nil
}

func (st *state) setEnsemble(rec ensembleRecord) {
	st.ensemble = rec
	st.setSingle(ensemblePrefix, rec.empty(), appendEnsemble(nil, &rec))
}
