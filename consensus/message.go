package consensus

import (
	"encoding/binary"
	"errors"
	"fmt"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// message is what one member's core sends to another's. One of the pointers is set.
type message struct {
	to, from uint64
	raft     *raftpb.Message
	forward  *group // requests of the sender's stream, for the leader
	join     *joinRequest
	answer   *joinAnswer
	settled  *settled // to a candidate
}

// The first byte of a frame between members. See docs/reference/formats.md, "Messages between members".
const (
	frameRaft    = 1
	frameForward = 2
	frameJoin    = 3
	frameAnswer  = 4
	frameReport  = 5
	frameSettled = 6
)

var errBadMessage = errors.New("consensus: malformed message")

// encode returns the frame of a message.
func (m *message) encode() ([]byte, error) {
	switch {
	case m.raft != nil:
		b := make([]byte, 1, 1+proto.Size(m.raft))
		b[0] = frameRaft
		b, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(b, m.raft)
		if err != nil {
			return nil, fmt.Errorf("consensus: encode a message to member %d: %w", m.to, err)
		}
		return b, nil
	case m.forward != nil:
		return appendGroup(append(make([]byte, 0, m.forward.size()+48), frameForward), m.forward), nil
	case m.join != nil:
		b := binary.AppendUvarint([]byte{frameJoin}, m.join.nonce)
		return binary.AppendUvarint(b, m.join.form), nil
	case m.settled != nil:
		b := binary.AppendUvarint([]byte{frameSettled}, m.settled.index)
		return binary.AppendUvarint(b, m.settled.term), nil
	}
	a := m.answer
	b := []byte{frameAnswer, byte(a.state)}
	for _, v := range [...]uint64{a.nonce, a.form, a.term} {
		b = binary.AppendUvarint(b, v)
	}
	return b, nil
}

// decodeMessage reads a frame from a member. The message shares it.
func decodeMessage(to, from uint64, frame []byte) (message, error) {
	m := message{to: to, from: from}
	bad := func(what string) (message, error) {
		return message{}, fmt.Errorf("%w from member %d: %s", errBadMessage, from, what)
	}
	if len(frame) == 0 {
		return bad("empty")
	}
	r := uvarints{b: frame[1:]}
	switch frame[0] {
	case frameRaft:
		m.raft = &raftpb.Message{}
		if err := proto.Unmarshal(r.b, m.raft); err != nil {
			return bad(err.Error())
		}
		if m.raft.GetType() == raftpb.MsgSnap {
			return bad("a snapshot, which comes as a checkpoint stream only")
		}
		return m, nil
	case frameForward:
		m.forward = &group{}
		m.forward.decode(&r)
		if m.forward.server != from || len(m.forward.payloads) == 0 {
			return bad("it forwards the requests of another")
		}
	case frameJoin:
		m.join = &joinRequest{r.next(), r.next()}
	case frameSettled:
		m.settled = &settled{r.next(), r.next()}
	case frameAnswer:
		if len(r.b) == 0 {
			return bad("too short")
		}
		m.answer = &joinAnswer{state: joinState(r.b[0])}
		r.b = r.b[1:]
		m.answer.nonce, m.answer.form, m.answer.term = r.next(), r.next(), r.next()
	default:
		return bad(fmt.Sprintf("unknown kind %d", frame[0]))
	}
	if r.bad || len(r.b) > 0 {
		return bad("wrong length")
	}
	return m, nil
}
