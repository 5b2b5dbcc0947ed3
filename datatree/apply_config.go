package datatree

import (
	"encoding/binary"

	"github.com/gozkd/gozkd/internal/serverlist"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// ConfigDoneBody is the body of configDone, which the leader proposes when raft has the members that are pending, or can't
// have them.
type ConfigDoneBody struct {
	Serial proto.Zxid    // of what is done, see Pending
	Code   proto.ErrCode // OK, or why it can't be done, such as ErrNewConfigNoQuorum
}

// Append appends the encoding: two varints.
func (c ConfigDoneBody) Append(b []byte) []byte {
	return binary.AppendVarint(binary.AppendVarint(b, int64(c.Serial)), int64(c.Code))
}

// reconfig checks what a client wants of the ensemble and makes it pending. It has no answer yet, because raft has to change
// first. In ZooKeeper the change is one txn, which is committed by old and new quorum.
//
// The order of the checks is ZooKeeper's, but that whether the new members can be reached is known in the end only, after the
// permission. Source: PrepRequestProcessor.pRequest2Txn; asked of 3.9.5.
func (t *Tree) reconfig(x *txn) proto.ErrCode {
	var r proto.ReconfigRequest
	d := jute.NewDecoder(x.Body) // its strings are copies: parts of them are kept
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
	next, code := serverlist.Reconfigure(now.current, r.Joining, r.Leaving, r.NewMembers)
	switch {
	case code != proto.OK:
		return code
	case !x.caller.may(proto.PermWrite, t.aclOf(t.get(configPath))):
		return proto.ErrNoAuth
	}
	return t.begin(x, next)
}

// initConfig makes the members with which an ensemble begins pending. Each member may propose it; the first one counts.
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

// begin makes next pending.
func (t *Tree) begin(x *txn, next serverlist.Set) proto.ErrCode {
	if code := x.fits("data", configPath, dataReplyBytes(len(next.Text(x.Zxid)))); code != proto.OK {
		return code
	}
	rec := *t.ensemble
	rec.pending = Pending{Serial: x.Zxid, Members: next}
	t.setEnsemble(rec)
	x.res.Pending, x.res.Serial = true, x.Zxid
	return proto.OK
}

// configDone ends what is pending. If it says OK, the new members stand in /zookeeper/config under its own zxid. It fails with
// the code in its body, which is for the client that asked, or with ErrBadVersion if something else is pending, or nothing:
// a leader that is none any more may have proposed the same.
//
// The version of the znode is -1 as after every reconfig, whatever it was. Source: DataTree.processTxn; asked of 3.9.5.
func (t *Tree) configDone(x *txn) proto.ErrCode {
	d := reader{b: x.Body}
	serial, code := proto.Zxid(d.varint()), proto.ErrCode(d.int32())
	rec := *t.ensemble
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

	n := t.get(configPath)
	znode := n.record()
	znode.setData([]byte(done.Text(x.Zxid)))
	znode.version = -1
	znode.mzxid, znode.mtimeMs = x.Zxid, x.TimeMs
	t.replace(n, &znode)
	t.emit(x, proto.EventDataChanged, n)
	znode = n.record()
	x.res.Data, x.res.Stat = znode.bytes(), t.stat(n, &znode)
	return proto.OK
}
