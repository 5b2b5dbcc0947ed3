package datatree

import (
	"bytes"
	"iter"
	"sync"

	"github.com/gozkd/gozkd/proto"
)

const batchRecords = 256

// Batch is a number of decoded records of a checkpoint, in the order of their keys.
type Batch struct {
	others []keyValue // records other than znodes; they come before the znodes
	znodes []sealed
	limits []string // targets of quotas among the znodes
	err    error    // the next record cannot be decoded, and nothing follows
	pool   *sync.Pool
}

type keyValue struct{ key, value []byte }

// sealed is a znode that is not in the tree yet.
type sealed struct {
	blob     blob
	hash     uint64 // of the blob
	dataSize int64  // blob.dataSize()
	acl      string
	owner    uint64
	kind     kind
}

// Decode yields the records of a checkpoint, whose keys and values kv holds in key order, for
// [Build]. A key and its value need to be valid only during their step. After a record that cannot
// be decoded nothing more is read.
func Decode(kv iter.Seq2[[]byte, []byte]) iter.Seq[*Batch] {
	return func(yield func(*Batch) bool) {
		d := decoder{acls: make(map[string]string)}
		d.pool.New = func() any { return &Batch{znodes: make([]sealed, 0, batchRecords), pool: &d.pool} }
		for key, value := range kv {
			isZnode := d.hasMeta && len(key) > 1 && key[0] == znodePrefix
			if d.full(isZnode) && !d.flush(yield) {
				return
			}
			if d.batch == nil {
				d.batch = d.pool.Get().(*Batch)
			}
			if !isZnode {
				d.other(key, value)
			} else if err := d.znode(textOf(key[1:]), value); err != nil {
				d.batch.err = keyError(key, err)
				break
			}
		}
		d.flush(yield)
	}
}

type decoder struct {
	batch    *Batch // nil: empty
	pool     sync.Pool
	hasMeta  bool
	lastZxid proto.Zxid
	acls     map[string]string // the encodings of ACLs so far, each once
	buf      []byte
}

// full reports whether the next record needs a new batch.
func (d *decoder) full(isZnode bool) bool {
	if d.batch == nil {
		return false
	}
	return len(d.batch.others)+len(d.batch.znodes) == batchRecords || !isZnode && len(d.batch.znodes) > 0
}

func (d *decoder) flush(yield func(*Batch) bool) bool {
	b := d.batch
	d.batch = nil
	return b == nil || yield(b)
}

func (d *decoder) other(key, value []byte) {
	if len(key) == 1 && key[0] == metaPrefix {
		d.hasMeta = true
		m, _ := decodeMeta(value) // Build reports the error
		d.lastZxid = m.lastZxid
	}
	d.batch.others = append(d.batch.others, keyValue{bytes.Clone(key), bytes.Clone(value)})
}

func (d *decoder) znode(path string, value []byte) error {
	if err := proto.ValidatePath(path); err != nil {
		return err
	}
	rec, err := decodeRecord(value, d.aclKey)
	if err != nil {
		return err
	}
	if err := rec.plausible(d.lastZxid); err != nil {
		return err
	}
	var b blob
	b, d.buf = seal(d.buf, path, &rec)
	d.batch.znodes = append(d.batch.znodes, sealed{
		blob: b, hash: b.hash(), dataSize: int64(len(path) + len(rec.data)), acl: rec.acl, kind: rec.kind, owner: rec.owner,
	})
	if target, ok := quotaTarget(b.path(), proto.QuotaLimits); ok {
		d.batch.limits = append(d.batch.limits, target)
	}
	return nil
}

// aclKey returns the encoding of a list, the same string for equal lists.
func (d *decoder) aclKey(list []proto.ACL) string {
	if isOpen(list) {
		return ""
	}
	d.buf = appendACL(d.buf[:0], list)
	key, ok := d.acls[string(d.buf)]
	if !ok {
		key = string(d.buf)
		d.acls[key] = key
	}
	return key
}
