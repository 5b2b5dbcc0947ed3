package core

import (
	"errors"
	"fmt"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// Message is a message between the cores of two members. Exactly one of the pointers is set.
type Message struct {
	To, From uint64
	Raft     *raftpb.Message
	Forward  *RequestRun // requests of the sender's stream, for the leader
	join     *joinRequest
	answer   *joinAnswer
	commit   *commitNotice
}

// JoinsOutdated reports whether the sender says its directory is behind what it has acknowledged.
func (m *Message) JoinsOutdated() bool { return m.join != nil && m.join.founders == 0 }

// JoinNonce returns the nonce of the sender's life if it says that it has no state, or is outdated.
func (m *Message) JoinNonce() (nonce uint64, ok bool) {
	if m.join == nil {
		return 0, false
	}
	return m.join.nonce, true
}

// A frame's first byte. See docs/reference/formats.md, "Messages between members".
const (
	frameRaft       = 1
	frameForward    = 2
	frameJoin       = 3
	frameJoinAnswer = 4
	// FrameApplication marks a frame whose content belongs to the user of Node.Send.
	FrameApplication = 5
	frameCommit      = 6
)

var errBadMessage = errors.New("consensus: malformed message")

// Encode returns the frame of a message.
func (m *Message) Encode() ([]byte, error) {
	switch {
	case m.Raft != nil:
		b := make([]byte, 1, 1+proto.Size(m.Raft))
		b[0] = frameRaft
		b, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(b, m.Raft)
		if err != nil {
			return nil, fmt.Errorf("consensus: encode a message to member %d: %w", number(m.To), err)
		}
		return b, nil
	case m.Forward != nil:
		return appendRun(append(make([]byte, 0, m.Forward.size()+48), frameForward), m.Forward), nil
	case m.join != nil:
		return appendUvarints([]byte{frameJoin}, m.join.nonce, m.join.founders), nil
	case m.commit != nil:
		return appendUvarints([]byte{frameCommit}, m.commit.index, m.commit.term), nil
	}
	a := m.answer
	return appendUvarints([]byte{frameJoinAnswer, byte(a.state)}, a.nonce, a.founders, a.term), nil
}

// DecodeMessage reads a frame from a member. The message shares the frame's memory.
func DecodeMessage(to, from uint64, frame []byte) (Message, error) {
	m := Message{To: to, From: from}
	bad := func(reason string) (Message, error) {
		return Message{}, fmt.Errorf("%w from member %d: %s", errBadMessage, number(from), reason)
	}
	if len(frame) == 0 {
		return bad("empty")
	}
	r := Uvarints{Rest: frame[1:]}
	switch frame[0] {
	case frameRaft:
		m.Raft = &raftpb.Message{}
		if err := proto.Unmarshal(r.Rest, m.Raft); err != nil {
			return bad(err.Error())
		}
		if m.Raft.GetType() == raftpb.MsgSnap {
			return bad("a snapshot; snapshots are sent as checkpoint streams only")
		}
		return m, nil
	case frameForward:
		m.Forward = &RequestRun{}
		m.Forward.decode(&r)
		if m.Forward.Server != from || len(m.Forward.Payloads) == 0 {
			return bad("forwarded requests of another member")
		}
	case frameJoin:
		m.join = &joinRequest{r.Next(), r.Next()}
	case frameCommit:
		m.commit = &commitNotice{r.Next(), r.Next()}
	case frameJoinAnswer:
		if len(r.Rest) == 0 {
			return bad("too short")
		}
		m.answer = &joinAnswer{state: joinState(r.Rest[0])}
		r.Rest = r.Rest[1:]
		m.answer.nonce, m.answer.founders, m.answer.term = r.Next(), r.Next(), r.Next()
	default:
		return bad(fmt.Sprintf("unknown kind %d", frame[0]))
	}
	if r.Bad || len(r.Rest) > 0 {
		return bad("wrong length")
	}
	return m, nil
}
