package zklearner

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"github.com/gozkd/gozkd/internal/bodyread"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// Type is the type of a packet between the servers of ZooKeeper. Source: Leader.java.
type Type int32

// The types that a leader and an observer exchange.
const (
	Proposal          Type = 2  // a transaction that Commit follows
	Ack               Type = 3  // of NewLeader and UpToDate
	Commit            Type = 4  // of the previous Proposal
	Ping              Type = 5  // answered by the sessions that the learner has heard from
	Inform            Type = 8  // a committed transaction
	CommitAndActivate Type = 9  // Commit of a reconfig
	NewLeader         Type = 10 // the learner has what the leader had; the data are the server lines
	UpToDate          Type = 12 // a quorum has it too
	Diff              Type = 13 // the learner's state is a prefix of the leader's
	Trunc             Type = 14 // the learner has transactions that the leader has not
	Snap              Type = 15 // the whole state follows
	ObserverInfo      Type = 16
	LeaderInfo        Type = 17
	AckEpoch          Type = 18
	InformAndActivate Type = 19 // Inform of a reconfig, after the number of the proposed leader
)

// Packet is a message between servers. Layout: int type, long zxid, buffer data, and a vector of
// identities that is null.
type Packet struct {
	Type Type
	Zxid proto.Zxid
	Data []byte // nil: null
}

// MaxPacket is the most bytes that a packet may have. ZooKeeper's own bound is jute.maxbuffer, 1
// MiB unless configured otherwise.
const MaxPacket = 64 << 20

const (
	headBytes = 16      // of a packet, up to its data
	chunk     = 1 << 16 // is allocated before the bytes for it have arrived
)

// ReadPacket reads a packet.
func ReadPacket(r *bufio.Reader) (Packet, error) {
	var head [headBytes]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return Packet{}, err
	}
	d := jute.NewDecoder(head[:])
	p := Packet{Type: Type(d.Int()), Zxid: proto.Zxid(d.Long())}
	n := int(d.Int())
	if n < -1 || n > MaxPacket {
		return Packet{}, fmt.Errorf("a packet of type %d has %d bytes of data, and may have %d", p.Type, n, MaxPacket)
	}
	if n >= 0 {
		var err error
		if p.Data, err = bodyread.Read(r, nil, n, chunk); err != nil {
			return Packet{}, err
		}
	}
	var ids [4]byte
	if _, err := io.ReadFull(r, ids[:]); err != nil {
		return Packet{}, bodyread.Within(err)
	}
	if n := int32(binary.BigEndian.Uint32(ids[:])); n > 0 {
		return Packet{}, fmt.Errorf("a packet of type %d has %d identities: no ZooKeeper sends them", p.Type, n)
	}
	return p, nil
}

// Append appends the encoding of a packet.
func (p *Packet) Append(b []byte) []byte {
	b = jute.AppendLong(jute.AppendInt(b, int32(p.Type)), int64(p.Zxid))
	return jute.AppendInt(jute.AppendBuffer(b, p.Data), -1)
}

// snapEnd is the string after the tree of a Snap packet.
const snapEnd = "BenWasHere"

func readSnapEnd(r *bufio.Reader) error {
	want := jute.AppendString(nil, snapEnd)
	got := make([]byte, len(want))
	if _, err := io.ReadFull(r, got); err != nil {
		return bodyread.Within(err)
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("the tree ends with %q, want %q", got, want)
	}
	return nil
}
