package zklearner

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/gozkd/gozkd/internal/neterr"
	"github.com/gozkd/gozkd/internal/zkfiles"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

const (
	// serverID is the number of a learner, which no server can have: ZooKeeper's are below 256.
	serverID = 0x676f7a6b64
	// protocolVersion is that of ZooKeeper 3.4 and later.
	protocolVersion = 0x10000
	// noEpoch is the current epoch of a learner that has acknowledged the leader's epoch before.
	// The leader then does not compare the learner's history with its own.
	noEpoch = -1
)

// errAgain ends a connection because the replica has what the leader has not. The replica was
// emptied, so that the next connection receives the whole state.
var errAgain = errors.New("the leader has not all transactions of the replica: receiving the whole state again")

type session struct {
	replica *Replica
	in      *bufio.Reader
	out     io.Writer
	// publish makes progress visible. announced is the last zxid that the leader named.
	publish func(announced proto.Zxid)
	// confirmed is called once the leader has confirmed its state, ensemble with the server lines.
	confirmed func()
	ensemble  func(Ensemble)
	look      func() neterr.WrongPort // Config.Look of the server

	epoch uint32
	// upToDate: a quorum has what the leader sent. Each transaction after that is committed.
	upToDate bool
	pending  *zkfiles.Record // a Proposal whose Commit has not come
}

// run follows the leader until the connection ends, and returns why. After an error that wraps
// ErrDiffers the replica must not be used.
func (s *session) run() error {
	if err := s.introduce(); err != nil {
		return err
	}
	if err := s.begin(); err != nil {
		return err
	}
	for {
		p, err := ReadPacket(s.in)
		if err != nil {
			return err
		}
		if err := s.handle(&p); err != nil {
			return err
		}
	}
}

// introduce agrees on the leader's epoch. The learner claims no epoch of its own, so that the
// leader chooses its epoch by the servers alone.
func (s *session) introduce() error {
	if s.replica.fuzzy { // the last connection ended too early
		s.replica.reset()
	}
	info := jute.AppendLong(jute.AppendInt(jute.AppendLong(nil, serverID), protocolVersion), 0)
	if err := s.send(ObserverInfo, 0, info); err != nil {
		return err
	}
	var p Packet
	head, err := s.in.Peek(headBytes)
	if wrong := neterr.AsWrongPort(head); wrong != nil {
		err = wrong
	} else if err == nil {
		p, err = ReadPacket(s.in)
	}
	switch {
	case err != nil:
		return s.noLeader(err)
	case p.Type != LeaderInfo:
		return fmt.Errorf("a packet of type %d where a leader of ZooKeeper 3.4 or later names its epoch", p.Type)
	}
	if s.epoch = p.Zxid.Epoch(); s.epoch < s.replica.epoch {
		return fmt.Errorf("it leads epoch %d, and epoch %d has begun: it is cut off from the other servers", s.epoch, s.replica.epoch)
	}
	return s.send(AckEpoch, s.replica.last, jute.AppendInt(nil, noEpoch))
}

// noLeader returns the error of a server that does not introduce itself as a leader.
func (s *session) noLeader(err error) error {
	const toName = "name the port for other servers, 2888 mostly"
	wrong := neterr.WrongPort("")
	if !errors.As(err, &wrong) {
		wrong = s.look()
	}
	if neterr.TLSReason(err) == neterr.HungUp {
		err = errors.New("the connection was closed")
	}
	switch wrong {
	case "":
		return fmt.Errorf("no leader answers: %w; %s, not that for clients", err, toName)
	case neterr.ForMembers:
		return errors.New("a server of gozkd answers: copy its data with gozkd mirror, or with gozkd backup and restore")
	}
	return fmt.Errorf("%s: %s", string(wrong), toName)
}

// begin reads how the leader brings the replica to its state.
func (s *session) begin() error {
	p, err := ReadPacket(s.in)
	if err != nil {
		return err
	}
	switch p.Type {
	case Diff:
		return nil
	case Snap:
		if err := s.replica.load(s.in, p.Zxid); err != nil {
			s.replica.reset()
			return fmt.Errorf("the state of the leader: %w", err)
		}
		s.publish(p.Zxid)
		return nil
	case Trunc:
		s.replica.reset()
		return errAgain
	}
	return fmt.Errorf("a packet of type %d where the leader sends its state", p.Type)
}

// handle handles a packet of a leader that has begun to send its state.
func (s *session) handle(p *Packet) error {
	switch p.Type {
	case Ping:
		s.publish(p.Zxid)
		return s.send(Ping, p.Zxid, []byte{}) // null would make the leader fail
	case Proposal:
		if s.pending != nil {
			return fmt.Errorf("proposal %v comes before the commit of %v", p.Zxid, s.pending.Zxid)
		}
		return s.decode(p, p.Data)
	case Commit, CommitAndActivate:
		if s.pending == nil || s.pending.Zxid != p.Zxid {
			return fmt.Errorf("the commit of %v comes without its proposal", p.Zxid)
		}
		return s.apply()
	case InformAndActivate:
		if len(p.Data) < 8 {
			return fmt.Errorf("reconfig %v has %d bytes", p.Zxid, len(p.Data))
		}
		p.Data = p.Data[8:]
		fallthrough
	case Inform:
		if s.pending != nil {
			return fmt.Errorf("transaction %v comes before the commit of %v", p.Zxid, s.pending.Zxid)
		}
		if err := s.decode(p, p.Data); err != nil {
			return err
		}
		return s.apply()
	case NewLeader:
		// What was applied to the tree while it was sent has been sent before this packet.
		s.replica.fuzzy = false
		s.ensemble(parseEnsemble(string(p.Data)))
		return s.send(Ack, p.Zxid, nil)
	case UpToDate:
		if s.replica.fuzzy {
			return errors.New("the leader confirms a state that it has not sent to its end")
		}
		s.upToDate, s.replica.settled, s.replica.epoch = true, true, s.epoch
		s.confirmed()
		return s.send(Ack, proto.MakeZxid(s.epoch, 0), nil)
	}
	return fmt.Errorf("a packet of type %d, which no leader sends to an observer", p.Type)
}

func (s *session) decode(p *Packet, b []byte) error {
	x, err := zkfiles.DecodeRecord(b)
	switch {
	case err != nil:
		return err
	case x.Zxid != p.Zxid:
		return fmt.Errorf("transaction %v is in a packet of %v", x.Zxid, p.Zxid)
	}
	s.pending = x
	return nil
}

func (s *session) apply() error {
	x := s.pending
	s.pending = nil
	s.replica.settled = s.upToDate
	if err := s.replica.Apply(x); err != nil {
		return err
	}
	if x.Txn.Op == proto.OpReconfig {
		s.ensemble(parseEnsemble(string(x.Txn.Data)))
	}
	s.publish(x.Zxid)
	return nil
}

func (s *session) send(t Type, z proto.Zxid, data []byte) error {
	p := Packet{Type: t, Zxid: z, Data: data}
	_, err := s.out.Write(p.Append(make([]byte, 0, headBytes+len(data)+binary.Size(int32(0)))))
	return err
}
