package exchange

import (
	"bytes"
	"encoding/binary"
	"maps"
	"slices"

	"github.com/gozkd/gozkd/proto"
)

// Normalize replaces, in place, the zxids, times, session ids and passwords of t by values that
// depend only on their order. Transcripts that Compare considers equal then have nearly equal
// bytes, so a new recording changes little in a file.
func (t *Transcript) Normalize() {
	zxids, times := make(map[int64]int64), make(map[int64]int64)
	t.eachField(func(_ []byte, f Field) {
		switch {
		case f.N <= 0: // a special value or zero
		case f.Kind == ZxidOf:
			zxids[f.N] = 0
		case f.Kind == TimeMs:
			times[f.N] = 0
		}
	})
	rank(zxids)
	rank(times)
	sessions := maps.Clone(t.Sessions)
	t.eachField(func(frame []byte, f Field) {
		switch {
		case f.Kind == ZxidOf && f.N > 0:
			binary.BigEndian.PutUint64(frame[f.Off:], uint64(zxids[f.N]))
		case f.Kind == TimeMs && f.N > 0:
			binary.BigEndian.PutUint64(frame[f.Off:], uint64(times[f.N]))
		case f.Kind == Owner || f.Kind == Secret:
			for slot, s := range sessions {
				if f.Kind == Owner && proto.SessionID(f.N) == s.ID {
					binary.BigEndian.PutUint64(frame[f.Off:], uint64(plainSession(slot).ID))
				}
				if f.Kind == Secret && s.has(&f) {
					copy(frame[f.Off+4:], plainSession(slot).Passwd)
				}
			}
		}
	})
	for slot := range t.Sessions {
		t.Sessions[slot] = plainSession(slot)
	}
}

// plainSession stands for a slot's session in a recorded transcript.
func plainSession(slot int) Session {
	return Session{proto.SessionID(0x100 + slot), bytes.Repeat([]byte{byte(0xa0 + slot)}, proto.PasswdBytes)}
}

// rank maps each key to its rank, from 1.
func rank(m map[int64]int64) {
	for i, k := range slices.Sorted(maps.Keys(m)) {
		m[k] = int64(i + 1)
	}
}

func (t *Transcript) eachField(f func(frame []byte, field Field)) {
	each := func(place int, items []Item) {
		for i, m := range t.Messages(place) {
			for _, field := range m.Fields {
				f(items[i].Frame, field)
			}
		}
	}
	for i := range t.Steps {
		each(i, t.Steps[i])
	}
	for slot := range t.Flush {
		each(len(t.Steps)+slot, t.Flush[slot])
	}
}
