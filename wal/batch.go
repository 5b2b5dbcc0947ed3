package wal

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// Entry is an entry of raft's log.
type Entry struct {
	Index uint64 // from 1
	Head  []byte // of an append: comes before Data, and is recovered as a part of it
	Data  []byte
}

// Batch is a unit of change: it is recovered as a whole or not at all.
type Batch struct {
	// State replaces the state. nil leaves the state unchanged; an empty state is not nil.
	State []byte
	// Reset, if not zero, drops all entries of the log before Entries are added, as after a
	// snapshot from a leader. The log then begins with index Reset+1.
	Reset uint64
	// Entries must have consecutive indexes, the first of which must be at most LastIndex()+1. All
	// existing entries from that index on are replaced.
	Entries []Entry
}

// position is the range of indexes of a log.
type position struct {
	first uint64 // lowest index that may be written
	last  uint64
}

// after returns the position after b, or an error that wraps ErrOrder.
func (p position) after(b *Batch) (position, error) {
	if b.Reset != 0 {
		p = position{first: b.Reset + 1, last: b.Reset}
	}
	if len(b.Entries) == 0 {
		return p, nil
	}
	index := b.Entries[0].Index
	if index < p.first || index > p.last+1 {
		return p, fmt.Errorf("%w: entry %d does not continue the log, which holds entries %d to %d", ErrOrder, index, p.first, p.last)
	}
	for i := range b.Entries {
		if b.Entries[i].Index != index+uint64(i) {
			return p, fmt.Errorf("%w: entry %d follows entry %d", ErrOrder, b.Entries[i].Index, index+uint64(i)-1)
		}
	}
	p.last = index + uint64(len(b.Entries)) - 1
	return p, nil
}

// encodedBytes returns the length of b's records, in 64 bits, so that the sum can't overflow.
func (b *Batch) encodedBytes() int64 {
	n := int64(0)
	if b.State != nil {
		n += 5 + int64(len(b.State))
	}
	if b.Reset != 0 {
		n += 9
	}
	if len(b.Entries) > 0 {
		n += 13
		for i := range b.Entries {
			n += 4 + int64(len(b.Entries[i].Head)+len(b.Entries[i].Data))
		}
	}
	return n
}

// append appends b's records to buf. encodedBytes is at most MaxAppendBytes, so all lengths fit.
func (b *Batch) append(buf []byte) []byte {
	le := binary.LittleEndian
	if b.State != nil {
		buf = append(buf, recordState)
		buf = le.AppendUint32(buf, uint32(len(b.State)))
		buf = append(buf, b.State...)
	}
	if b.Reset != 0 {
		buf = append(buf, recordReset)
		buf = le.AppendUint64(buf, b.Reset)
	}
	if len(b.Entries) > 0 {
		buf = append(buf, recordEntries)
		buf = le.AppendUint64(buf, b.Entries[0].Index)
		buf = le.AppendUint32(buf, uint32(len(b.Entries)))
		for i := range b.Entries {
			e := &b.Entries[i]
			buf = le.AppendUint32(buf, uint32(len(e.Head)+len(e.Data)))
			buf = append(append(buf, e.Head...), e.Data...)
		}
	}
	return buf
}

// replay is the content of a log that is being read.
type replay struct {
	state   []byte
	base    uint64 // index before the first of entries
	entries []Entry
}

func (r *replay) last() uint64 { return r.base + uint64(len(r.entries)) }

// payload applies the records of a frame, and retains slices of p. If ok is false, want and got
// describe the problem. The checksum of the frame was right, so the writer or the chain is broken.
func (r *replay) payload(p []byte) (want, got string, ok bool) {
	le := binary.LittleEndian
	for len(p) > 0 {
		kind := p[0]
		p = p[1:]
		switch {
		case kind == recordState && len(p) >= 4 && int64(le.Uint32(p)) <= int64(len(p)-4):
			n := le.Uint32(p)
			r.state, p = p[4:4+n:4+n], p[4+n:]
		case kind == recordReset && len(p) >= 8:
			r.base, r.entries, p = le.Uint64(p), nil, p[8:]
			if r.base == 0 || r.base == math.MaxUint64 {
				return "an index to reset to", fmt.Sprint(r.base), false
			}
		case kind == recordEntries && len(p) >= 12:
			first, n := le.Uint64(p), le.Uint32(p[8:])
			p = p[12:]
			if first == 0 || first > r.last()+1 {
				return fmt.Sprintf("entries from %d or less", r.last()+1), fmt.Sprintf("entries from %d", first), false
			}
			// An entry has at least 4 bytes, so a wrong count can't cause a large allocation.
			if n == 0 || int64(n) > int64(len(p)/4) || first > math.MaxUint64-uint64(n) {
				return "a count of entries that fits", fmt.Sprint(n), false
			}
			r.cutFrom(first)
			for i := range uint64(n) {
				if len(p) < 4 || int64(le.Uint32(p)) > int64(len(p)-4) {
					return "an entry that fits in its frame", fmt.Sprintf("%d bytes left", len(p)), false
				}
				size := le.Uint32(p)
				r.entries = append(r.entries, Entry{Index: first + i, Data: p[4 : 4+size : 4+size]})
				p = p[4+size:]
			}
		default:
			return "a record of this version", fmt.Sprintf("type %d with %d bytes left", kind, len(p)), false
		}
	}
	return "", "", true
}

// forget drops the entries before an index, except the last keep bytes of them.
func (r *replay) forget(index uint64, keep int64) {
	if index <= r.base+1 {
		return
	}
	n := min(index-1-r.base, uint64(len(r.entries)))
	for ; n > 0 && keep >= int64(len(r.entries[n-1].Data)); n-- {
		keep -= int64(len(r.entries[n-1].Data))
	}
	r.base += n
	r.entries = slices.Clone(r.entries[n:])
}

// cutFrom drops the entries from index on. An index below the oldest entry is valid: the segments
// of the entries between were dropped.
func (r *replay) cutFrom(index uint64) {
	r.base = min(r.base, index-1)
	r.entries = r.entries[:index-1-r.base]
}
