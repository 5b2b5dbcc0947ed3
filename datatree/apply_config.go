package datatree

import (
	"encoding/binary"

	"github.com/gozkd/gozkd/internal/serverlist"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// ConfigDoneBody is the body of configDone, which the leader proposes when raft has adopted the
// pending members, or cannot.
type ConfigDoneBody struct {
	Serial proto.Zxid    // of the pending change, see Pending
	Code   proto.ErrCode // OK, or why the change failed, for example ErrNewConfigNoQuorum
}

// Append appends the encoding: two varints.
func (c ConfigDoneBody) Append(b []byte) []byte {
	return binary.AppendVarint(binary.AppendVarint(b, int64(c.Serial)), int64(c.Code))
}

// reconfig checks a requested change of the members and makes it pending. The client gets no reply
// yet, because raft must change first. In ZooKeeper the change is a single transaction, committed
// by the old and the new quorum.
//
// The checks come in ZooKeeper's order, except that only the end of the change shows whether the
// new members can be reached. Source: PrepRequestProcessor.pRequest2Txn; behavior of 3.9.5.
func (t *Tree) reconfig(x *txn) proto.ErrCode {
	var r proto.ReconfigRequest
	d := jute.NewDecoder(x.Body) // copies strings, parts of which are kept
	r.Decode(&d)
	now := t.ensemble
	switch {
	case d.Err() != nil:
		return proto.ErrMarshallingError
	case now.empty():
		return proto.ErrUnimplemented
	case now.pending.Serial != 0:
		return proto.ErrReconfigInProgress
	case r.ConfigID != -1 && r.ConfigID != int64(now.version):
		return proto.ErrBadVersion
	}
	next, err := serverlist.Reconfigure(now.current, serverlist.Request{
		Joining: r.Joining, Leaving: r.Leaving, NewMembers: r.NewMembers, OneVoter: x.Flags&FlagOneVoter != 0,
		MultiAddress: x.Flags&FlagMultiAddress != 0,
	})
	may := x.caller.may(proto.PermWrite, t.aclOf(t.get(configPath)))
	if err != nil && may { // others do not write the log
		x.res.Why = err.Error()
	}
	switch code, ours := serverlist.Answer(err); {
	case code != proto.OK && !ours:
		return code
	case !may:
		return proto.ErrNoAuth
	case code != proto.OK:
		return code
	}
	return t.begin(x, next)
}

// initConfig makes the initial members of an ensemble pending. Every member may propose it; the
// first proposal counts.
func (t *Tree) initConfig(x *txn) proto.ErrCode {
	if x.Session != 0 {
		return proto.ErrUnimplemented
	}
	first, _, err := serverlist.ParseConfig(string(x.Body))
	switch now := t.ensemble; {
	case err != nil:
		x.res.Why = err.Error()
		return proto.ErrBadArguments
	case now.pending.Serial != 0:
		return proto.ErrReconfigInProgress
	case now.version != 0:
		return proto.ErrNodeExists
	case len(first.Voters()) == 0:
		x.res.Why = "an ensemble begins with one participant at least"
		return proto.ErrBadArguments
	}
	return t.begin(x, first)
}

func (t *Tree) begin(x *txn, next serverlist.Set) proto.ErrCode {
	if code := x.fits("data", configPath, dataReplyBytes(len(next.Text(x.Zxid)))); code != proto.OK {
		return code
	}
	rec := t.ensemble
	rec.pending = Pending{Serial: x.Zxid, Members: next}
	t.setEnsemble(rec)
	x.res.Pending, x.res.Serial = true, x.Zxid
	return proto.OK
}

// configDone ends the pending change. If its code is OK, /zookeeper/config gets the new members
// under the zxid of configDone. Otherwise configDone fails with the code in its body, which the
// client of the reconfig gets. It fails with ErrBadVersion if that change is not pending: a former
// leader may have proposed the same configDone.
//
// The version of the znode becomes -1, as after every reconfig. Source: DataTree.processTxn;
// behavior of 3.9.5.
func (t *Tree) configDone(x *txn) proto.ErrCode {
	d := reader{b: x.Body}
	serial, code := proto.Zxid(d.varint()), proto.ErrCode(d.int32())
	rec := t.ensemble
	switch {
	case x.Session != 0:
		return proto.ErrUnimplemented
	case d.end() != nil || code > 0:
		return proto.ErrMarshallingError
	case serial == 0 || serial != rec.pending.Serial:
		return proto.ErrBadVersion
	}
	x.res.Serial = serial
	done := rec.pending.Members
	rec.pending = Pending{}
	if code != proto.OK {
		t.setEnsemble(rec)
		return code
	}
	rec.version, rec.current = x.Zxid, done
	t.setEnsemble(rec)

	n := t.setConfigText([]byte(done.Text(x.Zxid)), x.Zxid, x.TimeMs)
	t.emit(x, proto.EventDataChanged, n)
	znode := n.record()
	x.res.Data, x.res.Stat = znode.bytes(), t.stat(n, &znode)
	return proto.OK
}

// setConfigText sets the data of /zookeeper/config, whose version is -1 after every reconfig.
func (st *state) setConfigText(text []byte, zxid proto.Zxid, timeMs int64) *znode {
	n := st.get(configPath)
	rec := n.record()
	rec.setData(text)
	rec.version = -1
	rec.mzxid, rec.mtimeMs = zxid, timeMs
	st.replace(n, &rec)
	return n
}
