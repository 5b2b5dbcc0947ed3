package consensus

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/gozkd/gozkd/consensus/internal/core"
)

// checksummed is a stranger's own encoder of a hello and of a frame: head, CRC-32C, body.
func checksummed(head, body []byte) []byte {
	table := crc32.MakeTable(crc32.Castagnoli)
	sum := crc32.Update(crc32.Checksum(head, table), table, body)
	return append(binary.LittleEndian.AppendUint32(head, sum), body...)
}

// strangerSays returns a hello as a member, and a frame.
func strangerSays(from, to uint64, m *core.Message, t *testing.T) []byte {
	hello := []byte("gozkdNET")
	for _, v := range []uint32{1, 1} {
		hello = binary.LittleEndian.AppendUint32(hello, v)
	}
	hello = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(hello, from), to)
	// The ensemble is not known; level 1 to 1, ready for 1, active 1; member 1 to 3 have begun a
	// life in the far future.
	contents := []byte{0, 1, 1, 1, 1, 3}
	for id := range uint64(3) {
		contents = binary.AppendUvarint(binary.AppendUvarint(contents, id+1), math.MaxUint64)
	}
	said := checksummed(binary.LittleEndian.AppendUint32(hello, uint32(len(contents))), contents)
	payload, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	frame := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, uint32(len(payload))), 1)
	return append(said, checksummed(frame, payload)...)
}

// Strangers who reach the peer port of a member stop nobody and change nothing, whatever they say
// in the name of a member, and however often they connect, whether that member is up or down.
func TestStrangers(t *testing.T) {
	raftMessage := func(typ raftpb.MessageType, term, commit uint64) func(from, to uint64) *core.Message {
		return func(from, to uint64) *core.Message {
			return &core.Message{Raft: &raftpb.Message{Type: typ.Enum(), From: &from, To: &to, Term: &term, Commit: &commit, Context: []byte("CampaignTransfer")}}
		}
	}
	attacks := []func(from, to uint64) *core.Message{
		raftMessage(raftpb.MsgVote, math.MaxUint64, 0),
		raftMessage(raftpb.MsgHeartbeat, 1000, 1<<40),
		raftMessage(raftpb.MsgHeartbeat, 0, 1<<40),
		func(from, _ uint64) *core.Message {
			return &core.Message{Forward: &core.RequestRun{Server: from, Incarnation: math.MaxUint64, First: 1, Payloads: [][]byte{[]byte("forged")}}}
		},
	}
	synctest.Test(t, func(t *testing.T) {
		b := newBubbled(t, time.Millisecond, 10*time.Millisecond, nil)
		defer b.stop()
		leader := b.leader()
		before := b.members[leader].Status()
		refused := 0
		attack := func() {
			for i := range 200 {
				to := uint64(i%3 + 1)
				from := uint64((i/3)%3 + 1)
				conn, err := b.network.Dial(t.Context(), "stranger", fmt.Sprintf("m%d:1", to))
				if err != nil {
					continue // that member is down
				}
				if _, err := conn.Write(strangerSays(from, to, attacks[i%len(attacks)](from, to), t)); err == nil {
					answer := make([]byte, 16)
					if _, err := io.ReadFull(conn, answer); err == nil && answer[12] == 4 {
						refused++
					}
				}
				_ = conn.Close()
			}
		}
		attack()
		time.Sleep(10 * time.Second)
		if after := b.members[leader].Status(); !after.Leading || after.Since != before.Since || after.Term != before.Term {
			t.Errorf("the leader changed: %+v, %+v", before, after)
		}
		down := (leader + 1) % 3
		b.end(down)
		b.done <- ErrClosed // for stop
		attack()
		time.Sleep(10 * time.Second)
		if refused < 300 {
			t.Errorf("%d connections refused", refused)
		}
		applied := make(chan struct{})
		b.members[leader].Propose([]byte("honest"), func() { close(applied) })
		<-applied
		time.Sleep(time.Second)
		for i, n := range b.members {
			if s := n.Status(); i != down && (s.Outdated || s.Term > before.Term+1) {
				t.Errorf("member %d: %+v", i+1, s)
			}
			if got := b.lists[i].all(); i != down && (slices.Contains(got, "forged") || !slices.Contains(got, "honest")) {
				t.Errorf("member %d applied %q", i+1, got)
			}
		}
	})
}

// Members with the same secret form an ensemble. One that prefers the secret also talks to one that
// has none yet.
func TestPeerSecret(t *testing.T) {
	secret := []byte("known to the members only")
	for name, each := range map[string]func(i int, cfg *Config){
		"required": func(_ int, cfg *Config) { cfg.PeerSecret = secret },
		"being introduced": func(i int, cfg *Config) {
			if i > 0 {
				cfg.PeerSecret, cfg.PeerSecretOptional = secret, true
			}
		},
		"being required": func(i int, cfg *Config) { cfg.PeerSecret, cfg.PeerSecretOptional = secret, i > 0 },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBubbled(t, time.Millisecond, 10*time.Millisecond, each)
				defer b.stop()
				b.leader()
				for i, n := range b.members {
					if got := n.Connected(); len(got) != 2 {
						t.Errorf("member %d is connected with %v", i+1, got)
					}
				}
			})
		})
	}
}

// A caller that had no address here when it was to be asked is refused, and what it says changes
// nothing, even if it has been given an address since.
func TestPeerHandler_ConfiguredMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubbled(t, time.Millisecond, 10*time.Millisecond, nil)
		defer b.stop()
		b.leader()
		hello, judge := b.members[1].network.Hello(), b.members[0].network
		if err := judge.Accept(2, hello, true); err != nil {
			t.Error(err)
		}
		if err := judge.Accept(2, hello, false); err == nil {
			t.Error("accepted without having been asked")
		}
	})
}
