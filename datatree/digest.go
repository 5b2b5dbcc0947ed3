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

// setSingle sets the value of a record that exists once, or deletes the record if it is empty.
func (st *state) setSingle(key byte, empty bool, value []byte) {
	st.digest -= singleDigest(key, st.singles[key])
	delete(st.singles, key)
	if !empty {
		st.singles[key] = string(value)
	}
	st.digest += singleDigest(key, st.singles[key])
	if st.dirty != nil {
		st.dirty.singles[key] = st.singles[key]
	}
}

func singleDigest(key byte, value string) uint64 {
	if value == "" {
		return 0
	}
	return xxhash.Sum64String(string([]byte{1, key}) + value)
}

// sealSession returns rec as an immutable record with its digest.
func (st *state) sealSession(rec sessionRecord) *sessionRecord {
	b := append(st.buf[:0], 1+8)
	b = appendSessionKey(b, rec.id)
	st.buf = appendSession(b, &rec)
	rec.digest = xxhash.Sum64(st.buf)
	return &rec
}
