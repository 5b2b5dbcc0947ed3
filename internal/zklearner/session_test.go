package zklearner

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/internal/neterr"
	"github.com/gozkd/gozkd/internal/testkit/zkrecord"
	"github.com/gozkd/gozkd/internal/zkfiles"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// source is a ZooKeeper ensemble with a history.
type source struct {
	state   *Replica
	records []*zkfiles.Record
}

func newSource() *source { return &source{state: newReplica()} }

// add adds transactions, with digests, from a zxid on.
func (s *source) add(t testing.TB, from proto.Zxid, txns ...zkfiles.Txn) {
	t.Helper()
	for i, x := range txns {
		r := &zkfiles.Record{Session: 0x77, Zxid: from + proto.Zxid(i), TimeMs: 1_700_000_000_000, Txn: x}
		if err := s.state.Apply(r); err != nil {
			t.Fatal(err)
		}
		r.HasDigest, r.DigestVersion, r.Digest = x.Op != proto.OpError, zkfiles.DigestVersion, s.state.Digest()
		s.records = append(s.records, r)
	}
}

func create(path string, counter int32) zkfiles.Txn {
	return zkfiles.Txn{Op: proto.OpCreate, Path: path, Data: []byte(path), ACL: proto.OpenACL(), ParentCversion: counter}
}

// sample is a source with an epoch of four transactions.
func sample(t testing.TB) *source {
	s := newSource()
	s.add(t, 0x100000001, zkfiles.Txn{Op: proto.OpCreateSession, TimeoutMs: 4000}, create("/a", 1), create("/a/b", 1), zkfiles.Txn{Op: proto.OpError})
	return s
}

func packet(t Type, z proto.Zxid, data []byte) []byte {
	return (&Packet{t, z, data}).Append(nil)
}

func inform(r *zkfiles.Record) []byte { return packet(Inform, r.Zxid, zkrecord.Append(nil, r)) }

// committed is a transaction as it is sent before NewLeader.
func committed(r *zkfiles.Record) []byte {
	return append(packet(Proposal, r.Zxid, zkrecord.Append(nil, r)), packet(Commit, r.Zxid, nil)...)
}

// snap is the whole state of a source: nodes says what the leader has written of it.
func (s *source) snap(zxid proto.Zxid, znodes ...zkfiles.Znode) []byte {
	b := packet(Snap, zxid, nil)
	b = jute.AppendInt(b, 1) // sessions
	b = jute.AppendInt(jute.AppendLong(b, 0x77), 4000)
	b = jute.AppendInt(b, 0) // ACLs
	for _, z := range znodes {
		b = z.Append(b)
	}
	return jute.AppendString(zkfiles.AppendTreeEnd(b), snapEnd)
}

// znode is the znode that a transaction of sample has created.
func znode(path string, zxid proto.Zxid, children int32, pzxid proto.Zxid) zkfiles.Znode {
	z := zkfiles.Znode{Path: path, Data: []byte(path), ACL: zkfiles.OpenKey}
	if zxid == 0 {
		z.Data = []byte{}
	} else {
		z.Stat.CtimeMs, z.Stat.MtimeMs = 1_700_000_000_000, 1_700_000_000_000
	}
	z.Stat.Czxid, z.Stat.Mzxid, z.Stat.Pzxid, z.Stat.Cversion = zxid, zxid, pzxid, children
	return z
}

const lines = "server.1=127.0.0.1:1:11:participant;127.0.0.1:21\nserver.2=127.0.0.1:2:12\nserver.3=127.0.0.1:3:13:observer\nversion=0"

func leads(epoch uint32) []byte {
	return packet(LeaderInfo, proto.MakeZxid(epoch, 0), jute.AppendInt(nil, protocolVersion))
}

func settles(epoch uint32) []byte {
	return append(packet(NewLeader, proto.MakeZxid(epoch, 0), []byte(lines)), packet(UpToDate, -1, nil)...)
}

// connect has a replica follow a leader that sends these bytes, and returns what the replica sent
// and why the connection ended.
func connect(r *Replica, in ...[]byte) (sent []Packet, confirmed int, ensemble Ensemble, err error) {
	var out bytes.Buffer
	s := session{
		replica: r, in: bufio.NewReader(bytes.NewReader(slices.Concat(in...))), out: &out, publish: func(proto.Zxid) {},
		confirmed: func() { confirmed++ }, ensemble: func(e Ensemble) { ensemble = e },
		look: func() neterr.WrongPort { return "" },
	}
	err = s.run()
	for in := bufio.NewReader(&out); ; {
		p, err := ReadPacket(in)
		if err != nil {
			break
		}
		sent = append(sent, p)
	}
	return sent, confirmed, ensemble, err
}

// mustEqual compares a replica with the source, by gozkd's digest, which covers more than
// ZooKeeper's.
func mustEqual(t *testing.T, r *Replica, s *source) {
	t.Helper()
	if r.Last() != s.state.Last() || r.Digest() != s.state.Digest() || r.Tree().Digest() != s.state.Tree().Digest() {
		t.Errorf("zxid %v digest %#x %#x, want %v %#x %#x", r.Last(), r.Digest(), r.Tree().Digest(), s.state.Last(), s.state.Digest(), s.state.Tree().Digest())
	}
}

// An observer gets the missing transactions, and then each one that commits. It answers as it must.
func TestSession_Differences(t *testing.T) {
	s, r := sample(t), newReplica()
	s.add(t, 0x100000005, zkfiles.Txn{Op: proto.OpReconfig, Path: "/zookeeper/config", Data: []byte("server.9=127.0.0.1:1:11"), Version: -1}, create("/c", 2))
	activate := s.records[4]
	sent, confirmed, ensemble, err := connect(r, leads(1), packet(Diff, 0x100000002, nil), committed(s.records[0]), committed(s.records[1]), settles(1),
		inform(s.records[2]), packet(Ping, 0x100000009, nil), inform(s.records[3]),
		packet(InformAndActivate, activate.Zxid, append(jute.AppendLong(nil, 9), zkrecord.Append(nil, activate)...)), inform(s.records[5]))
	if !errors.Is(err, io.EOF) || confirmed != 1 || !r.Settled() {
		t.Errorf("%v, confirmed %d", err, confirmed)
	}
	mustEqual(t, r, s)
	if n, upTo := r.Compared(); n != 5 || upTo != 0x100000006 {
		t.Errorf("%d digests compared, up to %v", n, upTo)
	}
	if fmt.Sprint(ensemble) != "{[{server.9 [127.0.0.1:11]}] false}" {
		t.Errorf("ensemble %v", ensemble)
	}
	want := []Packet{
		{ObserverInfo, 0, jute.AppendLong(jute.AppendInt(jute.AppendLong(nil, serverID), 0x10000), 0)},
		{AckEpoch, 0, []byte{0xff, 0xff, 0xff, 0xff}},
		{Ack, 0x100000000, nil},
		{Ack, 0x100000000, nil},
		{Ping, 0x100000009, []byte{}},
	}
	if fmt.Sprintf("%#v", sent) != fmt.Sprintf("%#v", want) {
		t.Errorf("sent %#v\nwant %#v", sent, want)
	}
	// The next connection begins after the last transaction.
	if sent, _, _, _ := connect(r, leads(2)); sent[1].Zxid != 0x100000006 {
		t.Errorf("resumes at %v", sent[1].Zxid)
	}
}

// The digest after a create of a client that asked for a container is that of a container.
func TestReplica_AskedForAnotherKind(t *testing.T) {
	s, r := sample(t), newReplica()
	r.fuzzy = false
	a := s.records[1]
	stat := zkfiles.Stat{Czxid: a.Zxid, Mzxid: a.Zxid, Pzxid: a.Zxid, CtimeMs: a.TimeMs, MtimeMs: a.TimeMs}
	a.Digest -= zkfiles.ZnodeDigest(a.Txn.Path, a.Txn.Data, &stat)
	stat.Owner = zkfiles.OwnerOf(zkfiles.Container, 0, 0)
	a.Digest += zkfiles.ZnodeDigest(a.Txn.Path, a.Txn.Data, &stat)
	for _, x := range s.records {
		if err := r.Apply(x); err != nil {
			t.Error(err)
		}
	}
	mustEqual(t, r, s)
}

// A tree that was changed while the leader sent it is the state of one moment once the transactions
// that were sent with it are applied.
func TestSession_FuzzyTree(t *testing.T) {
	for _, cut := range []bool{false, true} {
		s, r := sample(t), newReplica()
		// The leader has written /a/b, which the third transaction created, but /a without this
		// child.
		tree := s.snap(0x100000002, znode("/", 0, 1, 0x100000002), znode("/zookeeper", 0, 0, 0),
			znode("/a", 0x100000002, 0, 0x100000002), znode("/a/b", 0x100000003, 0, 0x100000003))
		in := [][]byte{leads(1), tree, inform(s.records[2]), settles(1), inform(s.records[3])}
		if cut {
			in = in[:3]
		}
		_, confirmed, ensemble, err := connect(r, in...)
		if !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		if cut {
			if r.Settled() {
				t.Error("a fuzzy tree is settled")
			}
			if sent, _, _, _ := connect(r, leads(1)); sent[1].Zxid != 0 {
				t.Errorf("a fuzzy tree is continued at %v", sent[1].Zxid)
			}
			continue
		}
		mustEqual(t, r, s)
		if confirmed != 1 || !r.Settled() || ensemble.Blocking() != 1 || len(ensemble.Voters) != 2 {
			t.Errorf("confirmed %d, settled %v, %v", confirmed, r.Settled(), ensemble)
		}
	}
}

// What a leader has sent without confirming it is not settled: another leader may not have it.
func TestSession_SettledByTheQuorum(t *testing.T) {
	s, r := sample(t), newReplica()
	_, _, _, _ = connect(r, leads(1), packet(Diff, 0x100000002, nil), committed(s.records[0]), settles(1))
	_, _, _, _ = connect(r, leads(1), packet(Diff, 0x100000002, nil))
	if !r.Settled() {
		t.Error("a leader that sent nothing unsettled the replica")
	}
	_, _, _, _ = connect(r, leads(2), packet(Diff, 0x100000002, nil), committed(s.records[1]))
	if r.Settled() {
		t.Error("settled without UPTODATE")
	}
	_, _, _, err := connect(r, leads(3), packet(Trunc, 0x100000001, nil))
	if !errors.Is(err, errAgain) || r.Last() != 0 || r.Settled() {
		t.Errorf("after TRUNC: %v, zxid %v", err, r.Last())
	}
	// The leader of an epoch that is over may still run.
	_, _, _, _ = connect(r, leads(3), packet(Diff, 0, nil), settles(3))
	if _, _, _, err := connect(r, leads(2), packet(Diff, 0, nil)); err == nil || !strings.Contains(err.Error(), "epoch 3 has begun") {
		t.Errorf("a leader of an old epoch: %v", err)
	}
}

// A replica that is not equal to the source is noticed.
func TestSession_Differs(t *testing.T) {
	s := sample(t)
	wrong := *s.records[2]
	wrong.Digest++
	fuzzy := s.snap(0x100000002, znode("/", 0, 1, 0x100000002), znode("/zookeeper", 0, 0, 0),
		znode("/a", 0x100000002, 0, 0x100000002))
	for _, c := range []struct {
		name string
		in   [][]byte
		want string // "": the connection ends without a difference
	}{
		{"digest", [][]byte{packet(Diff, 0, nil), settles(1), inform(s.records[0]), inform(s.records[1]), inform(&wrong)}, "that of the source"},
		{"while the tree is fuzzy", [][]byte{fuzzy, inform(&wrong)}, ""},
		{"after that", [][]byte{fuzzy, settles(1), inform(&wrong)}, "that of the source"},
		{"gap", [][]byte{packet(Diff, 0, nil), settles(1), inform(s.records[0]), inform(s.records[3])}, "those in between are missing"},
		{"nonsense", [][]byte{packet(Diff, 0, nil), settles(1), inform(&zkfiles.Record{Zxid: 0x100000001, Txn: create("x", 1)})}, "transaction 0x100000001"},
	} {
		_, _, _, err := connect(newReplica(), append([][]byte{leads(1)}, c.in...)...)
		if errors.Is(err, ErrDiffers) != (c.want != "") || !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// A server that breaks the protocol ends the connection only.
func TestSession_Hostile(t *testing.T) {
	s := sample(t)
	diff := packet(Diff, 0, nil)
	for _, c := range []struct {
		in   []byte
		want string
	}{
		{nil, "no leader answers"},
		{[]byte("gozkdNET and 8 bytes"), "a server of gozkd answers: copy its data with gozkd mirror"},
		{[]byte("HTTP/1.1 400 Bad Request\r\n"), "this port speaks HTTP: name the port for other servers"},
		{packet(NewLeader, 0, nil), "names its epoch"},
		{slices.Concat(leads(1), packet(Inform, 0, nil)), "sends its state"},
		{slices.Concat(leads(1), diff, packet(Commit, 1, nil)), "without its proposal"},
		{slices.Concat(leads(1), diff, packet(Proposal, s.records[0].Zxid, zkrecord.Append(nil, s.records[0])), inform(s.records[1])), "before the commit"},
		{slices.Concat(leads(1), diff, packet(Proposal, s.records[0].Zxid, zkrecord.Append(nil, s.records[0])), committed(s.records[1])), "before the commit"},
		{slices.Concat(leads(1), diff, packet(Inform, 5, zkrecord.Append(nil, s.records[0]))), "in a packet of 0x5"},
		{slices.Concat(leads(1), diff, packet(Inform, 5, []byte("x"))), "damaged"},
		{slices.Concat(leads(1), diff, packet(InformAndActivate, 5, []byte("x"))), "has 1 bytes"},
		{slices.Concat(leads(1), diff, packet(99, 5, nil)), "no leader sends to an observer"},
		{slices.Concat(leads(1), s.snap(1), packet(UpToDate, 0, nil)), "not sent to its end"},
		{slices.Concat(leads(1), bytes.TrimSuffix(s.snap(1), []byte("e")), diff), "the tree ends with"},
		{slices.Concat(leads(1), jute.AppendInt(jute.AppendLong(jute.AppendInt(nil, int32(Inform)), 1), MaxPacket+1)), "may have"},
		{slices.Concat(leads(1), jute.AppendInt(jute.AppendLong(jute.AppendInt(nil, int32(Inform)), 1), -2)), "may have"},
		{slices.Concat(leads(1), jute.AppendInt(jute.AppendLong(jute.AppendInt(nil, int32(Inform)), 1), MaxPacket)), "unexpected EOF"},
		{slices.Concat(leads(1), bytes.TrimSuffix(diff, []byte{0xff, 0xff, 0xff, 0xff}), []byte{0, 0, 0, 1}), "identities"},
	} {
		_, confirmed, _, err := connect(newReplica(), c.in)
		if err == nil || errors.Is(err, ErrDiffers) || confirmed > 0 || !strings.Contains(err.Error(), c.want) {
			t.Errorf("want %q: %v", c.want, err)
		}
	}
}

// Whatever a server sends, nothing panics.
func FuzzSession(f *testing.F) {
	s := sample(f)
	f.Add(slices.Concat(leads(1), packet(Diff, 0, nil), committed(s.records[0]), settles(1), inform(s.records[1]), packet(Ping, 9, nil)))
	f.Add(slices.Concat(leads(1), s.snap(1, znode("/", 0, 1, 2), znode("/a", 2, 0, 2)), inform(s.records[2]), settles(1)))
	f.Add(slices.Concat(leads(1), packet(Trunc, 0, nil)))
	f.Fuzz(func(t *testing.T, in []byte) {
		if _, _, _, err := connect(newReplica(), in); err == nil {
			t.Error("the connection has no end")
		}
	})
}

func TestEnsemble_Blocking(t *testing.T) {
	for n, want := range []int{0, 1, 1, 2, 2, 3} {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, "server.%d=h%d:1:2\n", i+1, i+1)
		}
		if got := parseEnsemble(text.String() + "server.100=h:1:2:observer").Blocking(); got != want {
			t.Errorf("%d voters: %d", n, got)
		}
		if got := parseEnsemble(text.String() + "group.1=1").Blocking(); got != n {
			t.Errorf("%d voters in groups: %d", n, got)
		}
	}
	// A server line costs little and shows nothing that a terminal would obey.
	hostile := "server.1=" + strings.Repeat("h:1:2|", maxServerLine) + "\nserver.\x1b[31m=h:1:2"
	if e := parseEnsemble(hostile); fmt.Sprint(e.Voters) != `[{a server line that is too long []} {server.\x1b[31m []}]` {
		t.Errorf("voters %v", e.Voters)
	}
	if e := parseEnsemble("server.300=h:1:2\nserver.1=[::1]:1:2|h:3:4"); fmt.Sprint(e.Voters) != "[{server.300 []} {server.1 [[::1]:2 h:4]}]" {
		t.Errorf("voters %v", e.Voters)
	}
}
