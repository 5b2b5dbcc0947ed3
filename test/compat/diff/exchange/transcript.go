package exchange

import "github.com/gozkd/gozkd/proto"

// Transcript is a server's output for a sequence.
type Transcript struct {
	// Sequence is the played sequence with its root in place.
	Sequence *Sequence
	// Steps holds, per step, what arrived on its connection since that connection's previous step.
	Steps [][]Item
	// Flush holds what arrived on each slot at the end, up to the reply of a last ping.
	Flush map[int][]Item
	// Sessions holds the sessions by slot, as of the slot's first successful handshake.
	Sessions map[int]Session
}

// Session is a session's id and password.
type Session struct {
	ID     proto.SessionID
	Passwd []byte
}

// Item is a frame's payload or a note.
type Item struct {
	Frame []byte
	Note  Note
}

// Note is something other than a frame that happened to a connection.
type Note string

// Notes.
const (
	NoteClosed   Note = "closed"    // by the server
	NoteOpen     Note = "open"      // still open, where ZooKeeper closes
	NoteNoReply  Note = "no reply"  // in time; the client dropped the connection
	NoteNotThere Note = "not there" // the connection is closed or was never opened: nothing was sent
	// Of a connection whose session was resumed, or attempted with a wrong password:
	NoteVictimClosed Note = "victim closed"
	NoteVictimOpen   Note = "victim open"
)
