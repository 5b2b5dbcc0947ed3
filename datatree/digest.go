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
func (st *state) Digest() uint64 { return st.digest }

// sealEnsemble returns rec as an immutable record with its digest.
func (st *state) sealEnsemble(rec ensembleRecord) *ensembleRecord {
	rec.digest = 0
	if !rec.empty() {
		st.buf = appendEnsemble(append(st.buf[:0], 1, ensemblePrefix), &rec)
		rec.digest = xxhash.Sum64(st.buf)
	}
	return &rec
}

// sealSession returns rec as an immutable record with its digest.
func (st *state) sealSession(rec sessionRecord) *sessionRecord {
	b := append(st.buf[:0], 1+8)
	b = appendSessionKey(b, rec.id)
	st.buf = appendSession(b, &rec)
	rec.digest = xxhash.Sum64(st.buf)
	return &rec
}
