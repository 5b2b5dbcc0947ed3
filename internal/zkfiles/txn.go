package zkfiles

import (
	"fmt"
	"slices"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// Record is a transaction with its header: an entry of a log, and what a leader sends to learners.
type Record struct {
	Session proto.SessionID
	Cxid    int32
	Zxid    proto.Zxid
	TimeMs  int64
	Txn     Txn
	// Digest is the digest of the tree after the transaction, if HasDigest. ZooKeeper 3.6 and later
	// write it, but not after a failed request.
	Digest        uint64
	DigestVersion int32
	HasDigest     bool
}

// Txn is a transaction. Fields that Op does not have are zero.
//
//	create, create2                     Path Data ACL Ephemeral ParentCversion
//	createContainer, createTTL          Path Data ACL ParentCversion TTLMs
//	delete, deleteContainer             Path
//	setData, reconfig                   Path Data Version
//	setACL                              Path ACL Version
//	check                               Path Version
//	createSession                       TimeoutMs
//	closeSession                        Paths
//	multi                               Ops
//	error                               Err
//
// Values are absolute: ParentCversion and Version are those after the transaction.
type Txn struct {
	Op             proto.OpCode
	Path           string
	Data           []byte // nil: null
	ACL            []proto.ACL
	Ephemeral      bool
	ParentCversion int32 // NoCversion: one more than before
	TTLMs          int64
	Version        int32
	TimeoutMs      int32
	// Paths are the ephemerals of a closed session, if HasPaths. Without them, which is so before
	// 3.6, all ephemerals of the session go.
	Paths    []string
	HasPaths bool
	Ops      []Txn
	Err      proto.ErrCode
}

// NoCversion stands in creates of ZooKeeper 3.3, which did not log the parent's counter.
const NoCversion = -1

// Failed reports whether a multi failed. ZooKeeper logs the operations before the failed one as if
// they had been executed. They were not: a failed multi changes nothing.
func (t *Txn) Failed() bool {
	return slices.ContainsFunc(t.Ops, func(op Txn) bool { return op.Op == proto.OpError })
}

// Follows reports whether no transaction lies between two zxids: the counter grows by one, and an
// epoch begins with 1.
func Follows(a, b proto.Zxid) bool { return b == a+1 || b.Epoch() > a.Epoch() && b.Counter() == 1 }

const digestBytes = 12

// DecodeRecord decodes an entry of a log, or a proposal of a leader. The result shares no memory
// with b, except data. Errors wrap ErrDamaged.
func DecodeRecord(b []byte) (*Record, error) {
	d := jute.NewDecoder(b)
	r := &Record{Session: proto.SessionID(d.Long()), Cxid: d.Int(), Zxid: proto.Zxid(d.Long()), TimeMs: d.Long()}
	op := proto.OpCode(d.Int())
	if d.Err() != nil {
		return nil, fmt.Errorf("%w: the header of a transaction: %w", ErrDamaged, d.Err())
	}
	body := d.Rest()
	if err := r.decodeBody(op, body); err != nil {
		return nil, fmt.Errorf("%w: transaction %v, %v: %w", ErrDamaged, r.Zxid, op, err)
	}
	return r, nil
}

// decodeBody decodes the transaction and its digest. Two transactions had fewer fields in earlier
// versions: they are tried without these fields if the bytes do not fit otherwise.
func (r *Record) decodeBody(op proto.OpCode, body []byte) error {
	d := jute.NewDecoder(body)
	txn, err := decodeTxn(&d, op, 0)
	if err == nil {
		err = r.decodeDigest(&d)
	}
	if err != nil {
		old := jute.NewDecoder(body)
		switch op {
		case proto.OpCreate:
			txn = Txn{Op: op, Path: old.String(), Data: old.Buffer(), ACL: proto.DecodeACLs(&old), Ephemeral: old.Bool(), ParentCversion: NoCversion}
		case proto.OpCloseSession:
			txn = Txn{Op: op}
		default:
			return err
		}
		if old.Err() != nil || r.decodeDigest(&old) != nil {
			return err
		}
	}
	r.Txn = txn
	return nil
}

func (r *Record) decodeDigest(d *jute.Decoder) error {
	switch {
	case d.Err() != nil:
		return d.Err()
	case d.Remaining() == 0:
		return nil
	case d.Remaining() != digestBytes:
		return fmt.Errorf("%d bytes follow it", d.Remaining())
	}
	r.HasDigest, r.DigestVersion, r.Digest = true, d.Int(), uint64(d.Long())
	return nil
}

// decodeTxn decodes a transaction. depth is 1 for an operation of a multi.
func decodeTxn(d *jute.Decoder, op proto.OpCode, depth int) (Txn, error) {
	t := Txn{Op: op}
	switch op {
	case proto.OpCreate, proto.OpCreate2:
		t.Path, t.Data, t.ACL = d.String(), d.Buffer(), proto.DecodeACLs(d)
		t.Ephemeral, t.ParentCversion = d.Bool(), d.Int()
	case proto.OpCreateContainer:
		t.Path, t.Data, t.ACL, t.ParentCversion = d.String(), d.Buffer(), proto.DecodeACLs(d), d.Int()
	case proto.OpCreateTTL:
		t.Path, t.Data, t.ACL, t.ParentCversion, t.TTLMs = d.String(), d.Buffer(), proto.DecodeACLs(d), d.Int(), d.Long()
	case proto.OpDelete, proto.OpDeleteContainer:
		t.Path = d.String()
	case proto.OpSetData, proto.OpReconfig:
		t.Path, t.Data, t.Version = d.String(), d.Buffer(), d.Int()
	case proto.OpSetACL:
		t.Path, t.ACL, t.Version = d.String(), proto.DecodeACLs(d), d.Int()
	case proto.OpCheck:
		t.Path, t.Version = d.String(), d.Int()
	case proto.OpCreateSession:
		t.TimeoutMs = d.Int()
	case proto.OpCloseSession:
		if d.Remaining() > 0 {
			t.Paths, t.HasPaths = d.Strings(), true
		}
	case proto.OpError:
		t.Err = proto.ErrCode(d.Int())
	case proto.OpMulti:
		if depth > 0 {
			return t, fmt.Errorf("a multi within a multi")
		}
		return t, t.decodeOps(d)
	default:
		return t, fmt.Errorf("type %d is not known", op)
	}
	return t, d.Err()
}

// decodeOps decodes the operations of a multi. A leader overwrites the types of a multi that failed
// with that of an error and leaves the bodies: they are not looked at.
func (t *Txn) decodeOps(d *jute.Decoder) error {
	for n := d.Count(8); n > 0; n-- {
		op := proto.OpCode(d.Int())
		body := jute.NewDecoder(d.Buffer())
		if d.Err() != nil {
			break
		}
		sub := Txn{Op: op}
		if op == proto.OpError {
			if body.Remaining() == 4 {
				sub.Err = proto.ErrCode(body.Int())
			}
		} else {
			var err error
			if sub, err = decodeTxn(&body, op, 1); err == nil && body.Remaining() != 0 {
				err = fmt.Errorf("%d bytes follow it", body.Remaining())
			}
			if err != nil {
				return fmt.Errorf("operation %d of the multi, %v: %w", len(t.Ops), op, err)
			}
		}
		t.Ops = append(t.Ops, sub)
	}
	return d.Err()
}
