package replica

import (
	"slices"
	"strings"
	"time"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// Txn is a transaction of a log, or an operation of a multi. Fields that a format lacks are zero.
type Txn struct {
	Zxid    proto.Zxid // 0: not known
	Time    time.Time
	Index   uint64 // of raft's entry
	Term    uint64 // of raft's entry
	Session proto.SessionID
	Cxid    int32 // the client's number of the request, if HasCxid
	HasCxid bool
	Server  uint8  // the member whose client it was
	Op      string // as the protocol names the operation
	Path    string
	// Sequential says that Path lacks its sequence number, because the result is not known.
	Sequential bool
	Mode       string // of a create: persistent, ephemeral, container, ttl
	Version    *int32 // of a write: the version after it; unless Known, the version that the client expects
	Data       []byte
	HasData    bool
	ACL        []proto.ACL
	IDs        []proto.ID // of the caller
	Ops        []Txn      // of a multi
	Deleted    []string   // ephemerals that ended with the session
	TimeoutMs  int32      // of a session
	// Events are those of the watches. They are valid until the next transaction.
	Events []datatree.Event

	Known bool          // Err is the result
	Err   proto.ErrCode // of the operation; of a multi, of the multi as a whole
	// Uncommitted: unless the entry is committed after all, no client was told of its success.
	Uncommitted bool
}

// Failed reports whether the transaction is known to have changed nothing.
func (t *Txn) Failed() bool { return t.Known && t.Err != proto.OK }

// Touches reports whether match accepts a path of the transaction.
func (t *Txn) Touches(match func(path string) bool) bool {
	return t.Path != "" && match(t.Path) || slices.ContainsFunc(t.Deleted, match) ||
		slices.ContainsFunc(t.Ops, func(op Txn) bool { return op.Touches(match) })
}

// decodeTxn returns the transaction of a request in our log, without its result.
func decodeTxn(r *datatree.Request) Txn {
	t := Txn{Op: r.Op.String(), Session: r.Session, Server: r.Server, IDs: r.IDs}
	var d jute.Decoder
	d.Reset(r.Body)
	switch r.Op {
	case proto.OpCreateSession, proto.OpReattachSession:
		t.TimeoutMs = d.Int()
	case proto.OpMulti:
		var multi proto.MultiRequest
		if multi.Decode(&d, proto.OpMulti) == nil {
			for i := range multi.Ops {
				op := Txn{Op: multi.Ops[i].Op.String()}
				op.set(&multi.Ops[i])
				t.Ops = append(t.Ops, op)
			}
		}
	case proto.OpConfigDone:
		t.Path = "/zookeeper/config"
	case proto.OpDeleteContainer:
		t.Path = d.String()
	default:
		op := proto.MultiOp{Op: r.Op}
		switch r.Op {
		case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL:
			var req proto.CreateRequest
			req.Decode(&d, r.Op)
			op.Path, op.Data, op.ACL, op.Mode = req.Path, req.Data, req.ACL, req.Mode
		case proto.OpDelete:
			op.Path, op.Version = d.RequiredString(), d.Int()
		case proto.OpSetData:
			var req proto.SetDataRequest
			req.Decode(&d)
			op.Path, op.Data, op.Version = req.Path, req.Data, req.Version
		case proto.OpSetACL:
			var req proto.SetACLRequest
			req.Decode(&d)
			op.Path, op.ACL, op.Version = req.Path, req.ACL, req.Version
		}
		if d.Err() == nil {
			t.set(&op)
		}
	}
	return t
}

func (t *Txn) set(op *proto.MultiOp) {
	t.Path, t.ACL = op.Path, op.ACL
	switch op.Op {
	case proto.OpSetData:
		t.Version, t.Data, t.HasData = &op.Version, op.Data, true
	case proto.OpDelete, proto.OpCheck, proto.OpSetACL:
		t.Version = &op.Version
	case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL:
		t.Data, t.HasData, t.Sequential, t.Mode = op.Data, true, op.Mode.Sequential(), ModeName(op.Mode)
	}
}

// ModeName returns the name of the kind of a znode.
func ModeName(m proto.CreateMode) string {
	switch {
	case m.Ephemeral():
		return "ephemeral"
	case m == proto.ModeContainer:
		return "container"
	case m.TTL():
		return "ttl"
	}
	return "persistent"
}

// setResult adds what applying the request has shown.
func (t *Txn) setResult(r *datatree.Request, res *datatree.Result, events []datatree.Event) {
	t.Zxid, t.Known, t.Err, t.Events = res.Zxid, true, res.Err, events
	if res.Err != proto.OK {
		t.Sequential = false
		return
	}
	switch r.Op {
	case proto.OpCreateSession, proto.OpReattachSession:
		t.Session = res.SessionID
	case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL:
		t.Path, t.Sequential = strings.Clone(res.Path), false
	case proto.OpSetData:
		t.Version = &res.Stat.Version
	case proto.OpConfigDone:
		t.Data, t.HasData = res.Data, true
	case proto.OpSetACL:
		t.Version = &res.Stat.Aversion
	case proto.OpCloseSession, proto.OpExpireSession:
		for _, e := range events {
			if e.Type == proto.EventDeleted {
				t.Deleted = append(t.Deleted, strings.Clone(e.Path))
			}
		}
	case proto.OpMulti:
		t.setResults(res)
	}
}

// setResults adds the results of the operations of a multi.
func (t *Txn) setResults(res *datatree.Result) {
	for i := range min(len(t.Ops), len(res.Multi)) {
		op, got := &t.Ops[i], &res.Multi[i]
		op.Known, op.Err = true, got.Err
		switch {
		case got.Err != proto.OK:
			if t.Err == proto.OK && got.Err != proto.ErrRuntimeInconsistency {
				t.Err = got.Err
			}
		case got.Op == proto.OpCreate, got.Op == proto.OpCreate2:
			op.Path, op.Sequential = strings.Clone(got.Path), false
		case got.Op == proto.OpSetData:
			op.Version = &got.Stat.Version
		}
	}
	if res.MultiFailed { // the operations before the failed one were undone
		for i := range t.Ops {
			if t.Ops[i].Err == proto.OK {
				t.Ops[i].Err = proto.ErrRuntimeInconsistency
			}
			t.Ops[i].Sequential = false
		}
	}
}
