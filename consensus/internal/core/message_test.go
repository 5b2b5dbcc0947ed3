package core

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// Each kind of message comes back from its frame, and says whether a member without state sent it.
func TestMessage_RoundTrip(t *testing.T) {
	for _, tc := range []struct {
		m        Message
		nonce    uint64
		joins    bool
		outdated bool
	}{
		{Message{Raft: &raftpb.Message{Type: raftpb.MsgApp.Enum(), Term: new(uint64(9)), Context: []byte{1}}}, 0, false, false},
		{Message{Forward: &RequestRun{Server: 2, Incarnation: 300, First: 70, Payloads: [][]byte{{'x'}, {}}}}, 0, false, false},
		{Message{join: &joinRequest{nonce: 300, founders: 400}}, 300, true, false},
		{Message{join: &joinRequest{nonce: 300}}, 300, true, true},
		{Message{answer: &joinAnswer{state: joinFormedKnowing, nonce: 300, founders: 400, term: 500}}, 0, false, false},
		{Message{commit: &commitNotice{index: 300, term: 400}}, 0, false, false},
	} {
		tc.m.To, tc.m.From = 1, 2
		frame, err := tc.m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeMessage(1, 2, frame)
		same := reflect.DeepEqual(got, tc.m)
		if tc.m.Raft != nil {
			same = proto.Equal(got.Raft, tc.m.Raft)
		}
		nonce, joins := got.JoinNonce()
		if err != nil || !same || nonce != tc.nonce || joins != tc.joins || got.JoinsOutdated() != tc.outdated {
			t.Errorf("%+v becomes %+v, %v; joins %v with nonce %d, outdated %v", tc.m, got, err, joins, nonce, got.JoinsOutdated())
		}
		if tc.m.Raft != nil {
			continue
		}
		if _, err := DecodeMessage(1, 2, append(frame, 0)); err == nil {
			t.Errorf("%+v and another byte are taken", tc.m)
		}
		for n := range frame {
			if _, err := DecodeMessage(1, 2, frame[:n]); err == nil {
				t.Errorf("%d of %d bytes of %+v are taken", n, len(frame), tc.m)
			}
		}
	}
}

func TestMessage_Refused(t *testing.T) {
	encode := func(m Message) []byte {
		frame, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return frame
	}
	for _, tc := range []struct {
		frame []byte
		want  string
	}{
		{nil, "empty"},
		{[]byte{9}, "unknown kind 9"},
		{[]byte{frameRaft, 0xff}, "from member 2: "},
		{encode(Message{Raft: &raftpb.Message{Type: raftpb.MsgSnap.Enum()}}), "snapshots are sent as checkpoint streams only"},
		{encode(Message{Forward: &RequestRun{Server: 3, Payloads: [][]byte{{}}}}), "forwarded requests of another member"},
		{encode(Message{Forward: &RequestRun{Server: 2}}), "forwarded requests of another member"},
		{[]byte{frameJoinAnswer}, "too short"},
		{[]byte{frameJoin, 1}, "wrong length"},
	} {
		if _, err := DecodeMessage(1, 2, tc.frame); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%x: %v, want %s", tc.frame, err, tc.want)
		}
	}
	if m, err := (&Message{To: 3, Raft: &raftpb.Message{Context: []byte{1}}}).Encode(); err != nil || m[0] != frameRaft {
		t.Error(m, err)
	}
}

// Records of a log and checkpoints are read only if they are whole, and of a version that is known.
func TestDecode_Refused(t *testing.T) {
	meta := Meta{Member: 1, Level: 2, Index: 3, Term: 2, Conf: &raftpb.ConfState{Voters: []uint64{1}}, Streams: Streams{1: {1, 2}}}
	whole := meta.Append(nil)
	body := whole[:len(whole)-4]
	for n := range whole {
		if _, err := DecodeMeta(whole[:n]); err == nil {
			t.Errorf("%d of %d bytes of a meta are taken", n, len(whole))
		}
	}
	for n := 1; n < len(body); n++ {
		if _, err := DecodeMeta(withChecksum(body[:n])); err == nil {
			t.Errorf("%d of %d bytes of a meta with their checksum are taken", n, len(body))
		}
	}
	for b, want := range map[string]string{
		"":         "checkpoint meta of 0 bytes",
		"1234":     "checkpoint meta of 4 bytes",
		"12345":    "checksum",
		"\x00":     "format 0 is of a version before the first release",
		"\x04\x63": "has level 99, and its format 4 is not known here",
	} {
		in := []byte(b)
		if len(b) < 3 && b != "" {
			in = withChecksum(in)
		}
		if _, err := DecodeMeta(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", b, err, want)
		}
	}
	for b, want := range map[string]string{"\x00": "version 0", "\x03": "version 3", "\x01\x01\x01\x01": "malformed", "\x01": "malformed"} {
		if _, err := DecodeLogState([]byte(b)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("log state %x: %v", b, err)
		}
	}
	if s, err := DecodeLogState(nil); s != (LogState{}) || err != nil {
		t.Error(s, err)
	}
	for _, b := range []string{"", "\x05", "\xff"} {
		if e, err := DecodeEntry(3, []byte(b)); err == nil {
			t.Errorf("entry %x: %v", b, e)
		}
	}
	if e, err := DecodeEntry(3, []byte{5, 0}); err != nil || e.Data != nil || e.GetTerm() != 5 || e.GetIndex() != 3 {
		t.Error(e, err)
	}
	if e, err := DecodeEntry(3, []byte{5, 0, 9}); err != nil || len(e.Data) != 1 {
		t.Error(e, err)
	}
}

// What was malformed once gives nothing any more, and counts that no input can hold are not counted
// through.
func TestUvarints_Malformed(t *testing.T) {
	r := Uvarints{Rest: []byte{5, 1, 7}} // five bytes are not there
	if b := r.bytes(); b != nil || !r.Bad || r.Next() != 0 || len(r.bytes()) != 0 {
		t.Errorf("%x, then %+v", b, r)
	}
	many := binary.AppendUvarint(nil, 1<<60)
	if _, err := DecodeMessage(1, 2, slices.Concat([]byte{frameForward, 2, 1, 1}, many)); err == nil {
		t.Error("a run of 2^60 requests is taken")
	}
	hello := Uvarints{Rest: many}
	if got := ReadIncarnation(&hello, 1); got != 0 || !hello.Bad {
		t.Errorf("a hello with 2^60 incarnations has %d", got)
	}
	meta := (&Meta{Conf: &raftpb.ConfState{}}).Append(nil)
	if _, err := DecodeMeta(withChecksum(append(meta[:len(meta)-5], many...))); err == nil {
		t.Error("a meta with 2^60 streams is taken")
	}
	for what, b := range map[string][]byte{
		"empty": nil, "another version": {9, 3}, "a run that is cut off": {batchVersion, 3, 1}, "2^60 requests": slices.Concat([]byte{batchVersion, 3, 1, 1, 1}, many),
	} {
		if ms, err := ReadBatch(b, func(uint64, uint64, uint64, []byte) { t.Errorf("%s: a request", what) }); err == nil || ms != 0 {
			t.Errorf("%s: time %d, %v", what, ms, err)
		}
	}
	if ms, err := ReadBatch([]byte{batchVersion, 3}, nil); err != nil || ms != 3 {
		t.Errorf("a batch without requests: time %d, %v", ms, err)
	}
}

// What no member sends is refused, and nothing else.
func TestNonsense(t *testing.T) {
	entry := func(typ raftpb.EntryType, index, term uint64, data []byte) *raftpb.Entry {
		return &raftpb.Entry{Type: &typ, Index: &index, Term: &term, Data: data}
	}
	normal := func(index, term uint64) *raftpb.Entry { return entry(raftpb.EntryNormal, index, term, nil) }
	change := func(ids ...uint64) []byte {
		var cc raftpb.ConfChangeV2
		for _, id := range ids {
			cc.Changes = append(cc.Changes, confChange(raftpb.ConfChangeAddNode, id))
		}
		data, err := proto.Marshal(&cc)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	appends := func(logTerm uint64, entries ...*raftpb.Entry) func(*raftpb.Message) {
		return func(r *raftpb.Message) {
			r.Type, r.Index, r.LogTerm, r.Entries = raftpb.MsgApp.Enum(), new(uint64(20)), &logTerm, entries
		}
	}
	acknowledges := func(index uint64) func(*raftpb.Message) {
		return func(r *raftpb.Message) { r.Type, r.Index = raftpb.MsgAppResp.Enum(), &index }
	}
	reads := func(sizes ...int) func(*raftpb.Message) {
		return func(r *raftpb.Message) {
			r.Type, r.Term = raftpb.MsgReadIndex.Enum(), nil
			for _, n := range sizes {
				r.Entries = append(r.Entries, &raftpb.Entry{Data: make([]byte, n)})
			}
		}
	}
	lead := func(m *raftState) { m.role = raft.StateLeader }
	for _, tc := range []struct {
		what   string
		member func(m *raftState)
		change func(r *raftpb.Message)
		want   string // in the reason; empty: none
	}{
		{"a heartbeat", nil, nil, ""},
		{"no term", nil, func(r *raftpb.Message) { r.Term = nil }, "it has no term"},
		{"an earlier term", nil, func(r *raftpb.Message) { r.Term = new(uint64(1)) }, ""},
		{"a much later term", nil, func(r *raftpb.Message) { r.Term = new(uint64(7 + maxTermJump)) }, ""},
		{"an absurd term", nil, func(r *raftpb.Message) { r.Term = new(uint64(8 + maxTermJump)) }, "no ensemble holds so many elections"},
		{"a term later than that of its admission", func(m *raftState) { m.minTerm = 9 }, func(r *raftpb.Message) { r.Term = new(uint64(9 + maxTermJump)) }, ""},
		{"a term much later than that of its admission", func(m *raftState) { m.minTerm = 9 }, func(r *raftpb.Message) { r.Term = new(uint64(10 + maxTermJump)) }, "so many elections"},
		{"the last index", nil, func(r *raftpb.Message) {
			r.Index, r.Commit, r.RejectHint = new(uint64(maxIndex-1)), new(uint64(maxIndex-1)), new(uint64(maxIndex-1))
		}, ""},
		{"an absurd index", nil, func(r *raftpb.Message) { r.Index = new(uint64(maxIndex)) }, "no log has so many entries"},
		{"an absurd commit index", nil, func(r *raftpb.Message) { r.Commit = new(uint64(maxIndex)) }, "no log has so many entries"},
		{"an absurd hint", nil, func(r *raftpb.Message) { r.RejectHint = new(uint64(maxIndex)) }, "no log has so many entries"},
		{"a read round", nil, reads(readContextBytes), ""},
		{"no read round", nil, reads(), "it is no read round"},
		{"two read rounds", nil, reads(readContextBytes, readContextBytes), "it is no read round"},
		{"a short read round", nil, reads(readContextBytes - 1), "it is no read round"},
		{"a long read round", nil, reads(readContextBytes + 1), "it is no read round"},
		{"the last entry is acknowledged", lead, acknowledges(30), ""},
		{"an entry that is not there is acknowledged", lead, acknowledges(31), "it acknowledges entry 31, and the last entry is 30"},
		{"an entry that is not there is rejected", lead, func(r *raftpb.Message) { acknowledges(31)(r); r.Reject = new(true) }, ""},
		{"an entry is acknowledged to a follower", nil, acknowledges(31), ""},
		{"an entry of another term is acknowledged", lead, func(r *raftpb.Message) { acknowledges(31)(r); r.Term = new(uint64(6)) }, ""},
		{"no entries", nil, appends(7), ""},
		{"entries", nil, appends(5, normal(21, 5), normal(22, 6), normal(23, 7)), ""},
		{"a gap before the first entry", nil, appends(5, normal(22, 5)), "entry 22 of term 5 does not follow on entry 20 of term 5"},
		{"an entry that is repeated", nil, appends(5, normal(21, 5), normal(21, 5)), "entry 21 of term 5 does not follow on entry 21 of term 5"},
		{"an entry of an earlier term", nil, appends(5, normal(21, 4)), "does not follow"},
		{"an entry of an earlier term than the one before", nil, appends(5, normal(21, 6), normal(22, 5)), "entry 22 of term 5 does not follow on entry 21 of term 6"},
		{"an entry of a later term than the message", nil, appends(5, normal(21, 8)), "does not follow"},
		{"a batch", nil, appends(5, entry(raftpb.EntryNormal, 21, 5, appendBatchHeader(nil, 3))), ""},
		{"a batch of one byte", nil, appends(5, entry(raftpb.EntryNormal, 21, 5, []byte{batchVersion})), "entry 21: "},
		{"a damaged batch", nil, appends(5, entry(raftpb.EntryNormal, 21, 5, []byte{batchVersion, 0xff})), "entry 21: "},
		{"a later format", nil, appends(5, entry(raftpb.EntryNormal, 21, 5, []byte{9, 0xff})), ""},
		{"a change", nil, appends(5, entry(raftpb.EntryConfChangeV2, 21, 5, change(1, MaxMemberID))), ""},
		{"a damaged change", nil, appends(5, entry(raftpb.EntryConfChangeV2, 21, 5, []byte{0xff})), "entry 21: "},
		{"a change of nobody", nil, appends(5, entry(raftpb.EntryConfChangeV2, 21, 5, change(1, 0))), "names member 0"},
		{"a change of a member that cannot be", nil, appends(5, entry(raftpb.EntryConfChangeV2, 21, 5, change(MaxMemberID+1))), "names member 1"},
		{"an entry of another kind", nil, appends(5, entry(raftpb.EntryConfChange, 21, 5, []byte{batchVersion, 0xff})), ""},
	} {
		m := &raftState{raftTerm: 7, last: 30}
		if tc.member != nil {
			tc.member(m)
		}
		r := &raftpb.Message{Type: raftpb.MsgHeartbeat.Enum(), Term: new(uint64(7))}
		if tc.change != nil {
			tc.change(r)
		}
		if got := m.nonsense(r); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q, want %q", tc.what, got, tc.want)
		}
	}
	if number(MaxMemberID) != 0 || number(1) != 1 || number(254) != 254 {
		t.Error("numbers of members: ids are 1 to 254, and 255 for 0")
	}
}

// A member hands its own requests back, begins a new stream when a later life of its stream is
// seen, and notes which streams have begun.
func TestCore_Accepts(t *testing.T) {
	for _, tc := range []struct {
		what                        string
		server, incarnation, number uint64
		requests                    int
		ref                         any
		began                       uint64 // streams
		own                         bool   // goes on
		cluster                     uint64
	}{
		{"the next request of another", 9, 4, 11, 1, nil, 0, true, 0},
		{"the first of a later life", 9, 5, 1, 1, nil, 1, true, 0},
		{"one that was applied", 9, 4, 10, 0, nil, 0, true, 0},
		{"its own", 3, 7, 1, 1, "a", 1, true, 0},
		{"its own after a gap", 3, 7, 2, 0, nil, 0, true, 0},
		{"its own of an earlier life", 3, 6, 1, 1, nil, 1, true, 0},
		{"its own of a later life", 3, 8, 1, 1, nil, 1, false, 0},
		{"the ensemble's identity", clusterStream, 0, 0, 0, nil, 0, true, 0x78787878_78787878},
	} {
		c := newFollower(t)
		c.own.incarnation, c.cluster, c.Admission.past.incarnation = 7, 0, 6
		c.Propose([]byte("a"), "a")
		c.streams[9] = StreamPosition{4, 10}
		c.accept(tc.server, tc.incarnation, tc.number, []byte("xxxxxxxx"))
		if len(c.requests) != tc.requests || c.incarnations != tc.began || c.cluster != tc.cluster {
			t.Errorf("%s: %d requests, %d streams began, ensemble %x", tc.what, len(c.requests), c.incarnations, c.cluster)
		}
		if len(c.requests) == 1 && (c.requests[0].Ref != tc.ref || string(c.requests[0].Payload) != "xxxxxxxx") {
			t.Errorf("%s: %+v", tc.what, c.requests[0])
		}
		if goesOn := c.own.incarnation == 7; goesOn != tc.own || !goesOn && (c.own.incarnation <= 8 || c.own.first != 1) {
			t.Errorf("%s: incarnation %d goes on", tc.what, c.own.incarnation)
		}
		if pending := 1; tc.ref != nil != (c.Pending() < pending) {
			t.Errorf("%s: %d pending", tc.what, c.Pending())
		}
		if outdated := c.Outdated() != ""; outdated != (tc.server == 3 && tc.incarnation == 8) {
			t.Errorf("%s: outdated %v", tc.what, outdated)
		}
	}
	c := newFollower(t)
	c.cluster = 5
	if c.accept(clusterStream, 0, 0, []byte("xxxxxxxx")); c.cluster != 5 {
		t.Errorf("the ensemble's identity changes to %x", c.cluster)
	}
	for payload, want := range map[string]uint64{"": 0, "1234567": 0, "123456789": 0, "\x00\x00\x00\x00\x00\x00\x01\x02": 258} {
		if got := decodeCluster([]byte(payload)); got != want {
			t.Errorf("%q is ensemble %d", payload, got)
		}
	}
	meta := &Meta{}
	for incarnation, want := range map[uint64]string{0: "7", 6: "7", 7: "7", 8: "later"} {
		c.own.incarnation, meta.Streams = 7, Streams{3: {incarnation, 1}}
		got := fmt.Sprint(c.IncarnationAfter(meta))
		if c.IncarnationAfter(meta) > 8 {
			got = "later"
		}
		if got != want {
			t.Errorf("a checkpoint with incarnation %d: %s", incarnation, got)
		}
	}
	if got := SkipIncarnations(7, 0); got != 8 {
		t.Errorf("after 7 comes %d at the earliest", got)
	}
	if got := SkipIncarnations(7, 5<<24+1); got != 13 {
		t.Errorf("a random distance after 7 is %d", got)
	}
}
