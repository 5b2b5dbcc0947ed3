package datatree

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"

	"github.com/gozkd/gozkd/proto"
)

// Digest returns a hash of all znodes and sessions, of the ensemble's members and of when the tree was rewound last. Trees that applied the same requests have the same digest, however
// their requests were batched and whether or not a checkpoint lies between.
//
// It is the sum modulo 2⁶⁴ of the hashes of all records as a checkpoint has them, so it can be kept up to date per
// change. LastZxid is no part of it.
func (t *Tree) Digest() uint64 { return t.digest }

// sealEnsemble returns rec as an immutable record with its digest.
func (t *Tree) sealEnsemble(rec ensembleRecord) *ensembleRecord {
	rec.digest = 0
	if !rec.empty() {
		t.buf = appendEnsemble(append(t.buf[:0], 1, ensemblePrefix), &rec)
		rec.digest = xxhash.Sum64(t.buf)
	}
	return &rec
}

// rewoundDigest returns the hash of the record of the last rewind; 0 stands for none, as for other records that are not there.
func (t *Tree) rewoundDigest(at proto.Zxid) uint64 {
	if at == 0 {
		return 0
	}
	t.buf = binary.AppendUvarint(append(t.buf[:0], 1, rewoundPrefix), uint64(at))
	return xxhash.Sum64(t.buf)
}

// sealSession does the same for a session.
func (t *Tree) sealSession(rec sessionRecord) *sessionRecord {
	b := append(t.buf[:0], 1+8)
	b = appendSessionKey(b, rec.id)
	t.buf = appendSession(b, &rec)
	rec.digest = xxhash.Sum64(t.buf)
	return &rec
}
