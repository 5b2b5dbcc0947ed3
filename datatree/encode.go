package datatree

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"github.com/gozkd/gozkd/internal/serverlist"
	"github.com/gozkd/gozkd/proto"
)

// Layout of the values: docs/reference/formats.md, "Checkpoint: the tree's keys and values".

// appendMeta appends the record and a hash of the record. The digest excludes the hash.
func appendMeta(b []byte, m meta) []byte {
	start := len(b)
	b = append(b, checkpointVersion)
	b = binary.BigEndian.AppendUint64(b, uint64(m.lastZxid))
	b = binary.BigEndian.AppendUint64(b, m.digest)
	b = binary.AppendUvarint(b, m.numZnodes)
	b = binary.AppendUvarint(b, m.numSessions)
	return binary.BigEndian.AppendUint64(b, xxhash.Sum64(b[start:]))
}

func decodeMeta(b []byte) (meta, error) {
	d := reader{b: b}
	if v := d.byte(); d.err == nil && v != checkpointVersion {
		return meta{}, fmt.Errorf("format version %d, known is %d", v, checkpointVersion)
	}
	m := meta{proto.Zxid(d.fixed64()), d.fixed64(), d.uvarint(), d.uvarint()}
	want := xxhash.Sum64(b[:len(b)-len(d.b)])
	if got := d.fixed64(); d.err == nil && got != want {
		return meta{}, fmt.Errorf("its hash is %#x, computed is %#x", got, want)
	}
	return m, d.end()
}

// nullData is a flag in a znode's first byte, whose two lowest bits are the kind.
const nullData = 0x04

func appendHead(b []byte, r *record) []byte {
	first := byte(r.kind)
	if r.null {
		first |= nullData
	}
	b = append(b, first)
	b = binary.AppendUvarint(b, uint64(r.czxid))
	b = binary.AppendVarint(b, int64(r.mzxid-r.czxid))
	b = binary.AppendVarint(b, int64(r.pzxid-r.czxid))
	b = binary.AppendVarint(b, r.ctimeMs)
	b = binary.AppendVarint(b, r.mtimeMs-r.ctimeMs)
	b = binary.AppendVarint(b, int64(r.version))
	b = binary.AppendVarint(b, int64(r.cversion))
	b = binary.AppendVarint(b, int64(r.aversion))
	if r.kind == ephemeral || r.kind == ttl {
		b = binary.BigEndian.AppendUint64(b, r.owner)
	}
	if r.acl == "" {
		return append(b, 0)
	}
	return append(b, r.acl...)
}

// decodeRecord reads a record from an untrusted source. The record's data shares b. aclKey returns
// the encoding of an ACL.
func decodeRecord(b []byte, aclKey func([]proto.ACL) string) (record, error) {
	d := reader{b: b}
	first := d.byte()
	if first&^nullData > byte(ttl) {
		return record{}, fmt.Errorf("first byte is %#x", first)
	}
	r := record{kind: kind(first &^ nullData), null: first&nullData != 0}
	r.czxid = proto.Zxid(d.uvarint())
	r.mzxid = r.czxid + proto.Zxid(d.varint())
	r.pzxid = r.czxid + proto.Zxid(d.varint())
	r.ctimeMs = d.varint()
	r.mtimeMs = r.ctimeMs + d.varint()
	r.version, r.cversion, r.aversion = d.int32(), d.int32(), d.int32()
	if r.kind == ephemeral || r.kind == ttl {
		r.owner = d.fixed64()
	}
	if list := d.acl(); list != nil {
		r.acl = aclKey(list)
	}
	if d.err != nil {
		return record{}, d.err
	}
	r.data = textOf(d.b)
	if r.null && r.data != "" {
		return record{}, fmt.Errorf("null data of %d bytes", len(r.data))
	}
	return r, nil
}

// plausible refuses a record that no tree with that last zxid can have.
func (r *record) plausible(last proto.Zxid) error {
	switch {
	case r.czxid < 0 || r.mzxid < r.czxid || r.pzxid < r.czxid || max(r.mzxid, r.pzxid) > last:
		return fmt.Errorf("zxids %v %v %v, the last one is %v", r.czxid, r.mzxid, r.pzxid, last)
	case r.kind == ttl && (r.owner == 0 || r.owner > maxTTLMs):
		return fmt.Errorf("it lives for %d ms", r.owner)
	case r.kind == ephemeral && r.owner == 0:
		return errors.New("it is ephemeral and belongs to no session")
	}
	return nil
}

// appendEnsemble encodes the members as in /zookeeper/config. Without members the text is empty.
func appendEnsemble(b []byte, r *ensembleRecord) []byte {
	for _, set := range r.both() {
		text := ""
		if set.Serial != 0 {
			text = set.Members.Text(set.Serial)
		}
		b = appendText(b, text)
	}
	return b
}

func decodeEnsemble(b []byte) (r ensembleRecord, err error) {
	d := reader{b: b}
	if r.current, r.version, err = serverlist.ParseConfig(d.text()); err == nil {
		r.pending.Members, r.pending.Serial, err = serverlist.ParseConfig(d.text())
	}
	return r, cmp.Or(err, d.end())
}

// appendLimit encodes a limit, which is not the zero Limit.
func appendLimit(b []byte, l Limit) []byte {
	full := byte(0)
	if l.Full {
		full = 1
	}
	return append(l.append(b), full)
}

// append encodes a limit without Full.
func (l Limit) append(b []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(l.Weight)), byte(l.Cause), l.Member)
}

func (d *reader) limit() Limit {
	return Limit{Weight: int64(d.uvarint()), Cause: LimitCause(d.byte()), Member: d.byte()}
}

func decodeLimit(b []byte) (Limit, error) {
	d := reader{b: b}
	l, full := d.limit(), d.byte()
	l.Full = full == 1
	if full > 1 {
		return l, fmt.Errorf("the mark of a full state is %d", full)
	}
	return l, cmp.Or(d.end(), l.check())
}

// check returns why no leader sets such a limit, or nil.
func (l Limit) check() error {
	if l.Weight < 0 || l.Cause > LimitedByDisk || l.Weight == 0 && (l.Full || l.Cause != LimitedByNothing) {
		return fmt.Errorf("a limit of %d bytes with the cause %d, full: %v", l.Weight, l.Cause, l.Full)
	}
	return nil
}

func appendSessionKey(b []byte, id proto.SessionID) []byte {
	return binary.BigEndian.AppendUint64(append(b, sessionPrefix), uint64(id))
}

func appendSession(b []byte, r *sessionRecord) []byte {
	b = binary.AppendVarint(b, int64(r.timeoutMs))
	b = binary.AppendUvarint(b, uint64(r.connEpoch))
	b = append(b, r.server)
	return append(b, r.passwd[:]...)
}

func decodeSession(id proto.SessionID, b []byte) (*sessionRecord, error) {
	d := reader{b: b}
	r := &sessionRecord{id: id, timeoutMs: d.int32(), connEpoch: proto.Zxid(d.uvarint()), server: d.byte()}
	copy(r.passwd[:], d.take(proto.PasswdBytes))
	return r, d.end()
}
