package consensus

import "sort"

// position is how far a server's stream was applied. It is replicated with the state.
type position struct{ incarnation, number uint64 }

// streams knows the position of each server's stream.
type streams map[uint64]position

// accept reports whether the request is the next one of its stream and notes it. A request that was applied before, that
// follows a gap, or that a dead incarnation sent, is not accepted (C2).
func (s streams) accept(server, incarnation, number uint64) bool {
	p := s[server]
	switch {
	case incarnation > p.incarnation && number == 1, incarnation == p.incarnation && number == p.number+1:
		s[server] = position{incarnation, number}
		return true
	}
	return false
}

func (s streams) servers() []uint64 {
	ids := make([]uint64, 0, len(s))
	for id := range s {
		ids = append(ids, id)
	}
	sort.Slice(ids, func(i, j int) bool { return ids[i] < ids[j] })
	return ids
}

// own is this server's stream: the requests that were not yet seen applied.
type own struct {
	incarnation uint64
	first       uint64 // number of pending[0]
	proposed    int    // how many of pending are on their way under the current leader
	pending     []request
}

type request struct {
	payload []byte
	ref     any
}

// take removes the request with that number from the head; all before it are gone already.
func (o *own) take(number uint64) (ref any, ok bool) {
	if number != o.first || len(o.pending) == 0 {
		return nil, false
	}
	ref = o.pending[0].ref
	o.pending[0] = request{}
	o.pending = o.pending[1:]
	o.first++
	o.proposed = max(o.proposed-1, 0)
	return ref, true
}
