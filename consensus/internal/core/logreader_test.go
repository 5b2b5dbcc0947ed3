package core

import (
	"fmt"
	"testing"

	"go.etcd.io/raft/v3/raftpb"
)

// A reader of a log that has lost its beginning takes the first request of each stream, and then
// those that follow: no request twice, none after a gap, none of an old incarnation.
func TestLogReader_StreamsThatBeganEarlier(t *testing.T) {
	entry := func(index, term uint64, runs ...RequestRun) *raftpb.Entry {
		e := &raftpb.Entry{Index: &index, Term: &term, Type: raftpb.EntryNormal.Enum()}
		switch index {
		case 1:
			e.Type = raftpb.EntryConfChangeV2.Enum()
		case 75:
			e.Type, e.Data = raftpb.EntryConfChangeV2.Enum(), []byte{9}
		case 76:
			e.Data = appendLevelChange(nil, 1000, 2) // its time is that of no batch
		}
		if len(runs) > 0 {
			e.Data = appendBatchHeader(nil, int64(index))
			for i := range runs {
				e.Data = appendRun(e.Data, &runs[i])
			}
		}
		return e
	}
	run := func(server, incarnation, first uint64, payloads ...string) RequestRun {
		g := RequestRun{Server: server, Incarnation: incarnation, First: first}
		for _, p := range payloads {
			g.Payloads = append(g.Payloads, []byte(p))
		}
		return g
	}
	r := LogReader{Streams: Streams{}}
	for i, c := range []struct {
		entry   *raftpb.Entry
		newTerm bool
		want    string
		timeMs  int64
	}{
		{entry(70, 5, run(1, 9, 40, "a", "b"), run(2, 3, 7, "c")), false, "[a b c]", 70},
		{entry(71, 5, run(1, 9, 41, "b", "d"), run(clusterStream, 0, 0, "identity")), false, "[d]", 71},
		{entry(72, 5, run(1, 9, 44, "gap")), false, "[]", 72},
		{entry(73, 6), true, "[]", 72},
		{entry(74, 6, run(1, 9, 43, "e"), run(2, 4, 1, "f"), run(2, 3, 8, "old")), false, "[e f]", 74},
		{entry(75, 6), false, "[]", 74},
		{entry(76, 6), false, "[]", 74},
		{entry(77, 6), false, "[]", 74},
	} {
		b, err := r.Read(c.entry)
		if err != nil {
			t.Fatal(err)
		}
		got := []string{}
		for _, request := range b.Requests {
			got = append(got, string(request.Payload))
		}
		if fmt.Sprint(got) != c.want || b.NewTerm != c.newTerm || b.TimeMs != c.timeMs || b.Index != uint64(70+i) {
			t.Errorf("entry %d at %d: %v, new term %v, want %+v", b.Index, b.TimeMs, got, b.NewTerm, c)
		}
	}
	if want := (Streams{1: {9, 43}, 2: {4, 1}}); fmt.Sprint(r.Streams) != fmt.Sprint(want) {
		t.Errorf("positions %v, want %v", r.Streams, want)
	}
	if b, err := (&LogReader{Streams: Streams{}}).Read(entry(2, 1)); err != nil || !b.NewTerm {
		t.Errorf("the first entry of a leader: %+v %v", b, err)
	}
	if b, err := (&LogReader{Streams: Streams{}}).Read(entry(1, 1)); err != nil || b.NewTerm {
		t.Errorf("a change of the membership, as the first entry that is left: %+v %v", b, err)
	}
	early := entry(78, 6)
	early.Data = appendBatchHeader(nil, 5)
	if b, err := r.Read(early); err != nil || b.TimeMs != 74 {
		t.Errorf("the clock of the leader was set back: %+v %v", b, err)
	}
	if _, err := r.Read(&raftpb.Entry{Type: raftpb.EntryNormal.Enum(), Data: []byte{9}}); err == nil {
		t.Error("a malformed batch was taken")
	}
}
