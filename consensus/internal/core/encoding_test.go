package core

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"
)

// The examples of docs/reference/formats.md. A change here is a change of the format.
func TestFormat_Examples(t *testing.T) {
	batch := appendRun(appendBatchHeader(nil, 1_700_000_000_000),
		&RequestRun{Server: 1, Incarnation: 7, First: 300, Payloads: [][]byte{[]byte("ab"), {}}})
	meta := Meta{Member: 2, Level: Level4, Cluster: 77, Index: 300, Term: 5, TimeMs: 1_700_000_000_000,
		Conf: &raftpb.ConfState{Voters: []uint64{1, 2}, Learners: []uint64{3}}, Streams: Streams{2: {4, 9}, 1: {7, 301}}}
	for _, tc := range []struct {
		name string
		got  []byte
		want string
	}{
		{"batch", batch, "0180d095ffbc31" + "0107ac0202" + "026162" + "00"},
		{"log entry", AppendEntry(nil, &raftpb.Entry{Term: proto.Uint64(300), Data: []byte("ab")}), "ac02006162"},
		{"log state", LogState{Term: 300, Vote: 2, Commit: 1000, Incarnation: 7}.Append(nil), "01ac0202e80707"},
		{"log state of an outdated member", LogState{Term: 300, Vote: 2, Commit: 1000, Incarnation: 7, Outdated: true}.Append(nil), "02ac0202e80707"},
		{"meta", meta.Append(nil), "0304" + "02ac020580d095ffbc31" + "4d00" + "020102" + "0103" + "00" + "00" + "020107ad02020409" + "META"},
		{"level change", appendLevelChange(nil, 1_700_000_000_000, 2), "0280d095ffbc31" + "02"},
		{"levels of a member", LevelInfo{LevelRange{1, 3}, 2, 1}.Append(nil), "01030201"},
	} {
		got := hex.EncodeToString(tc.got)
		if strings.HasPrefix(tc.name, "meta") {
			got = got[:len(got)-8] + "META" // the checksum
		}
		if got != tc.want {
			t.Errorf("%s is %s, want %s", tc.name, got, tc.want)
		}
	}
}

// A meta of a version before the first release, or of a later version, is refused.
func TestFormat_RefusesMetaOfOtherVersions(t *testing.T) {
	meta := Meta{Member: 2, Level: Level4, Conf: &raftpb.ConfState{}}
	b := meta.Append(nil)
	for version, want := range map[byte]error{0: ErrLevel, 1: ErrLevel, 2: ErrLevel, 3: nil, 4: ErrLevel} {
		b[0] = version
		body := b[:len(b)-4]
		if _, err := DecodeMeta(binary.LittleEndian.AppendUint32(body, crc32.Checksum(body, castagnoli))); !errors.Is(err, want) {
			t.Errorf("version %d: %v, want %v", version, err, want)
		}
	}
}

type numbered struct {
	server, incarnation, number uint64
	payload                     string
}

func collect(b []byte) (rs []numbered, timeMs int64, err error) {
	timeMs, err = ReadBatch(b, func(server, incarnation, number uint64, payload []byte) {
		rs = append(rs, numbered{server, incarnation, number, string(payload)})
	})
	return rs, timeMs, err
}

func TestBatch_RoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		timeMs := rapid.Int64().Draw(t, "time")
		b := appendBatchHeader(nil, timeMs)
		var want []numbered
		for range rapid.IntRange(0, 4).Draw(t, "groups") {
			g := RequestRun{rapid.Uint64().Draw(t, "server"), rapid.Uint64().Draw(t, "incarnation"), rapid.Uint64Range(0, 1<<40).Draw(t, "first"),
				rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 200), 0, 5).Draw(t, "payloads")}
			b = appendRun(b, &g)
			for i, p := range g.Payloads {
				want = append(want, numbered{g.Server, g.Incarnation, g.First + uint64(i), string(p)})
			}
		}
		got, gotMs, err := collect(b)
		if err != nil || gotMs != timeMs || !slices.Equal(got, want) {
			t.Fatalf("%v %d %v, want %v %d", got, gotMs, err, want, timeMs)
		}
		if cut := rapid.IntRange(0, len(b)).Draw(t, "cut"); cut < len(b) {
			// A batch may end between two runs; a cut anywhere else is noticed.
			got, _, err := collect(b[:cut])
			if err == nil && !slices.Equal(got, want[:len(got)]) {
				t.Fatalf("cut at %d: %v", cut, got)
			}
		}
	})
}

func TestMeta_RoundTripAndDamage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfN(rapid.Uint64(), 0, 5)
		m := Meta{
			Level: Level(rapid.Uint64Range(1, 300).Draw(t, "level")), Member: rapid.Uint64().Draw(t, "member"), Index: rapid.Uint64().Draw(t, "index"), Term: rapid.Uint64().Draw(t, "term"),
			TimeMs:  rapid.Int64().Draw(t, "time"),
			Cluster: rapid.Uint64().Draw(t, "cluster"), Streams: Streams{},
			Conf: &raftpb.ConfState{
				Voters: ids.Draw(t, "voters"), Learners: ids.Draw(t, "learners"), VotersOutgoing: ids.Draw(t, "outgoing"),
				LearnersNext: ids.Draw(t, "next"), AutoLeave: proto.Bool(rapid.Bool().Draw(t, "leave")),
			},
		}
		for _, id := range ids.Draw(t, "streams") {
			m.Streams[id] = StreamPosition{rapid.Uint64().Draw(t, "incarnation"), rapid.Uint64().Draw(t, "number")}
		}
		b := m.Append(nil)
		got, err := DecodeMeta(b)
		if err != nil || !bytes.Equal(got.Append(nil), b) || fmt.Sprint(got.Streams) != fmt.Sprint(m.Streams) || !proto.Equal(got.Conf, m.Conf) || got.TimeMs != m.TimeMs || got.Level != m.Level {
			t.Fatalf("%v %v, want %v", got, err, m)
		}
		bad := slices.Clone(b)
		bad[rapid.IntRange(0, len(b)-1).Draw(t, "at")] ^= byte(rapid.IntRange(1, 255).Draw(t, "flip"))
		if _, err := DecodeMeta(bad); err == nil {
			t.Fatal("a damaged byte was not noticed")
		}
	})
}

func TestLogRecords_RoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u := rapid.Uint64()
		s := LogState{u.Draw(t, "term"), u.Draw(t, "vote"), u.Draw(t, "commit"), u.Draw(t, "incarnation"), rapid.Bool().Draw(t, "outdated")}
		if got, err := DecodeLogState(s.Append(nil)); err != nil || got != s {
			t.Fatalf("%v %v, want %v", got, err, s)
		}
		e := &raftpb.Entry{Term: proto.Uint64(u.Draw(t, "entry term")), Index: proto.Uint64(9),
			Type: raftpb.EntryType(rapid.IntRange(0, 2).Draw(t, "type")).Enum(), Data: rapid.SliceOf(rapid.Byte()).Draw(t, "data")}
		got, err := DecodeEntry(9, AppendEntry(nil, e))
		if err != nil || got.GetTerm() != e.GetTerm() || got.GetType() != e.GetType() || got.GetIndex() != 9 || !bytes.Equal(got.GetData(), e.GetData()) {
			t.Fatalf("%v %v, want %v", got, err, e)
		}
	})
}

// FuzzDecode feeds all decoders. They must not panic, and must not return more than the input can
// hold.
func FuzzDecode(f *testing.F) {
	meta := Meta{Member: 1, Index: 3, Term: 2, Conf: &raftpb.ConfState{Voters: []uint64{1}}, Streams: Streams{1: {1, 2}}}
	f.Add(meta.Append(nil))
	f.Add(LogState{Term: 1, Vote: 2, Commit: 3, Incarnation: 4, Outdated: true}.Append(nil))
	f.Add(appendLevelChange(nil, 5, 2))
	f.Add(appendRun(appendBatchHeader(nil, 5), &RequestRun{1, 1, 1, [][]byte{[]byte("x")}}))
	f.Add([]byte("\x01\x00\x01\x01\x01\xff\xff\xff\xff\xff\xff\xff\xff\x7f")) // a wrong count
	f.Fuzz(func(t *testing.T, b []byte) {
		if rs, _, err := collect(b); err == nil || len(rs) > 0 {
			size := 0
			for _, r := range rs {
				size += 1 + len(r.payload)
			}
			if size > len(b) {
				t.Fatalf("%d bytes of requests from %d bytes", size, len(b))
			}
		}
		if e, err := DecodeEntry(1, b); err == nil && len(e.GetData()) >= len(b) {
			t.Fatal("an entry larger than its record")
		}
		if timeMs, l := decodeLevelChange(b); l != 0 {
			if againMs, again := decodeLevelChange(appendLevelChange(nil, timeMs, l)); againMs != timeMs || again != l {
				t.Fatalf("level %d at %d becomes %d at %d", l, timeMs, again, againMs)
			}
		}
		if s, err := DecodeLogState(b); err == nil && len(b) > 0 {
			if again, err := DecodeLogState(s.Append(nil)); err != nil || again != s {
				t.Fatalf("%v becomes %v, %v", s, again, err)
			}
		}
		// The checksum keeps damage out, but the decoder must be robust without it.
		for _, in := range [][]byte{b, withChecksum(b)} {
			m, err := DecodeMeta(in)
			if n := len(m.Conf.GetVoters()) + len(m.Conf.GetLearners()) + len(m.Streams); err == nil && n > len(b) {
				t.Fatalf("%d ids from %d bytes", n, len(b))
			}
		}
	})
}

func withChecksum(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(slices.Clone(b), crc32.Checksum(b, castagnoli))
}
