package exchange

import "github.com/gozkd/gozkd/proto"

// Transcript is what a server answered to a sequence.
type Transcript struct {
	// Sequence is what was played, with its root in place.
	Sequence *Sequence
	// Steps holds, for each step, what arrived on its connection from the end of that connection's step before.
	Steps [][]Item
	// Flush holds what arrived on each slot at the end, up to the reply of a last ping.
	Flush map[int][]Item
	// Sessions are the sessions by slot, as the first successful handshake of the slot left them.
	Sessions map[int]Session
}

// Session is a session's name and secret.
type Session struct {
	ID     proto.SessionID
	Passwd []byte
}

// Item is one thing that arrived on a connection: a frame's payload, or a note.
type Item struct {
	Frame []byte
	Note  Note
}

// Note is something that happened to a connection and is no frame.
type Note string

// The notes.
const (
	NoteClosed   Note = "closed"    // by the server
	NoteOpen     Note = "open"      // still, where ZooKeeper closes
	NoteNoReply  Note = "no reply"  // within the time; the client gave the connection up
	NoteNotThere Note = "not there" // the step's connection is closed or was never opened: nothing was sent
	// A connection of a session that somebody resumed, or tried to with a wrong password:
	NoteVictimClosed Note = "victim closed"
	NoteVictimOpen   Note = "victim open"
)
