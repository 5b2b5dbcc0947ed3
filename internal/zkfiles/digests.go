package zkfiles

import "github.com/gozkd/gozkd/proto"

// Digests reads the digests of consecutive records. The zero value begins with any record.
type Digests struct {
	ahead uint64 // by how much the last digest exceeded that of the tree
}

// OfTree returns the digest of the tree that r states. It differs from r.Digest after a create that
// asked for another kind of znode than it got: ZooKeeper adds what the znode would add as one of
// that kind. Until all transactions are applied that ZooKeeper has in its pipeline, it adds their
// changes to the digest that it began with. is is the digest of the tree after r.
func (d *Digests) OfTree(r *Record, is uint64) uint64 {
	exceeds := r.Digest - is
	for _, more := range append(otherKinds(r, &r.Txn), 0) {
		switch exceeds {
		case more:
			d.ahead = more
			return is
		case d.ahead + more:
			d.ahead += more
			return is
		}
	}
	d.ahead = 0
	return r.Digest
}

// otherKinds returns by how much ZooKeeper's digest may exceed that of the tree after a create. The
// request, create or createContainer, decides on the kind of the znode, but its mode on the digest,
// and a client may ask for a container with create. Source: pRequest2TxnCreate of
// PrepRequestProcessor. x is the transaction of r, or a part of it: after a multi, the digest may
// exceed by the sum of any of its creates.
func otherKinds(r *Record, x *Txn) (more []uint64) {
	container := OwnerOf(Container, 0, 0)
	var is int64
	var asked []int64
	switch {
	case x.Failed():
		return nil
	case x.Op == proto.OpMulti:
		const most = 1 << 12 // bounds the memory for a multi of many creates
		for i := range x.Ops {
			before := more
			for _, one := range otherKinds(r, &x.Ops[i]) {
				more = append(more, one)
				for _, sum := range before {
					more = append(more, sum+one)
				}
			}
			if len(more) > most {
				return nil
			}
		}
		return more
	case (x.Op == proto.OpCreate || x.Op == proto.OpCreate2) && !x.Ephemeral:
		asked = []int64{container}
	case x.Op == proto.OpCreateContainer:
		is, asked = container, []int64{0, int64(r.Session)}
	}
	digest := func(owner int64) uint64 {
		return ZnodeDigest(x.Path, x.Data, &Stat{
			Czxid: r.Zxid, Mzxid: r.Zxid, Pzxid: r.Zxid, CtimeMs: r.TimeMs, MtimeMs: r.TimeMs, Owner: owner,
		})
	}
	for _, owner := range asked {
		more = append(more, digest(owner)-digest(is))
	}
	return more
}
