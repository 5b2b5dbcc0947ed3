package core

import "go.etcd.io/raft/v3/raftpb"

// LogReader turns entries of a log into batches without the state that they apply to. It does not
// know how far each stream was when the log began: of a stream that began before the log, it
// accepts the first request that it reads.
type LogReader struct {
	Streams Streams // the positions so far; not nil
	term    uint64
	timeMs  int64
}

// Read returns the batch of the next entry. NewTerm of the first batch is set if the entry has no
// data, as the first entry of each leader.
func (r *LogReader) Read(e *raftpb.Entry) (Batch, error) {
	b := Batch{Index: e.GetIndex(), NewTerm: e.GetTerm() != r.term}
	normal := e.GetType() == raftpb.EntryNormal
	if r.term == 0 {
		b.NewTerm = normal && len(e.Data) == 0
	}
	r.term = e.GetTerm()
	if normal && len(e.Data) > 0 && EntryLevel(e) == 0 {
		timeMs, err := ReadBatch(e.Data, func(server, incarnation, number uint64, payload []byte) {
			if server == clusterStream {
				return
			}
			if _, known := r.Streams[server]; !known {
				r.Streams[server] = StreamPosition{incarnation, number - 1}
			}
			if r.Streams.accept(server, incarnation, number) {
				b.Requests = append(b.Requests, Request{Payload: payload})
			}
		})
		if err != nil {
			return Batch{}, err
		}
		r.timeMs = max(r.timeMs, timeMs)
	}
	b.TimeMs = r.timeMs
	return b, nil
}
