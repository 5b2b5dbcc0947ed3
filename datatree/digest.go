package datatree

import (
	"github.com/cespare/xxhash/v2"
)

// Digest returns a hash of all znodes and sessions and of the ensemble's members. Trees that
// applied the same requests have the same digest, however the requests were batched and whether or
// not the tree was restored in between.
//
// The digest is the sum modulo 2⁶⁴ of the hashes of all records of a checkpoint except its meta
// record, so each change updates it. LastZxid is not part of it.
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

// sealSession returns rec as an immutable record with its digest.
func (t *Tree) sealSession(rec sessionRecord) *sessionRecord {
	b := append(t.buf[:0], 1+8)
	b = appendSessionKey(b, rec.id)
	t.buf = appendSession(b, &rec)
	rec.digest = xxhash.Sum64(t.buf)
	return &rec
}
