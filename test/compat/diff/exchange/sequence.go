package exchange

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/gozkd/gozkd/proto"
)

// RootTemplate stands for the root of a sequence in its requests. Play replaces it by a path of the
// same length, so that a sequence can be played many times on a server.
const RootTemplate = "/t@@@@@"

// Root returns the nth replacement for RootTemplate, n < 100000.
func Root(n int) string { return fmt.Sprintf("/t%05d", n) }

// Sequence is a list of steps of several clients, one at a time. It contains nothing that depends
// on a server.
type Sequence struct {
	Name string
	// Reconnects: a slot whose connection the server has closed gets a new session before its next
	// request.
	Reconnects bool
	Steps      []Step
}

// Requests returns the number of requests and handshakes in the sequence.
func (s *Sequence) Requests() int {
	n := 0
	for i := range s.Steps {
		n += len(s.Steps[i].Send)
		if s.Steps[i].Connect != nil || s.Steps[i].Raw != nil {
			n++
		}
	}
	return n
}

// Step is an action of a client whose results it then awaits. Exactly one of Connect, Send, Raw and
// Drop is set.
type Step struct {
	// Conn is the slot of the connection. A Connect puts a new connection into it.
	Conn    int
	Connect *Connect
	Send    []Request // in one segment; a reply for each is awaited
	Raw     []byte    // written unchanged; needs Closes
	Drop    bool      // the client closes the connection and leaves the session
	// Closes: ZooKeeper closes the connection after this step, which is awaited.
	Closes bool
	// Until repeats Send until the last reply has this code. 0: Send is sent once.
	Until proto.ErrCode
}

// Connect is a handshake.
type Connect struct {
	Session   int     `json:"session"` // slot of the session
	How       How     `json:"how"`
	TimeoutMs int32   `json:"timeoutMs"`
	ReadOnly  *bool   `json:"readOnly,omitempty"` // nil: without the trailing byte
	Protocol  int32   `json:"protocol,omitempty"`
	LastZxid  ZxidArg `json:"lastZxid,omitempty"`
	Passwd    Hex     `json:"passwd,omitempty"` // of a new session, where it is ignored; nil is null
	Member    int     `json:"member,omitempty"` // index of the server in Player.Members
}

// newSession is the handshake of a new session in the slot of its connection.
func newSession(slot int) *Connect { return &Connect{Session: slot, How: HowNew, TimeoutMs: 30000} }

// Refused reports whether ZooKeeper closes the connection instead of opening or resuming a session.
func (c *Connect) Refused() bool {
	return c.How == HowWrongPasswd || c.How == HowUnknown || c.LastZxid == ZxidAhead
}

// How selects the session of a handshake.
type How string

// Values of How.
const (
	HowNew         How = "new"
	HowResume      How = "resume"       // with the password of the session
	HowWrongPasswd How = "wrong-passwd" // then the session's previous connection is probed and dropped
	HowUnknown     How = "unknown"      // with an id that no server gave out
)

// ZxidArg is the zxid that a client claims to have seen.
type ZxidArg string

// Values of ZxidArg.
const (
	ZxidZero     ZxidArg = ""
	ZxidSeen     ZxidArg = "seen"  // the largest in a reply so far
	ZxidAhead    ZxidArg = "ahead" // larger than any the server has
	ZxidNegative ZxidArg = "negative"
)

// Request is a frame with a request header.
type Request struct {
	Xid  int32
	Op   proto.OpCode
	Body []byte
	// ZxidOf, if set, is the index of a step: the last zxid seen up to its end goes into the first
	// 8 bytes of Body.
	ZxidOf *int
}

// Hex is bytes in hex in JSON.
type Hex []byte

// MarshalText encodes h.
func (h Hex) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h), nil }

// UnmarshalText decodes into h.
func (h *Hex) UnmarshalText(text []byte) error {
	b, err := hex.AppendDecode(Hex{}, text)
	*h = b
	return err
}

// WithRoot returns the sequence with root for RootTemplate. The result shares unchanged parts.
func (s *Sequence) WithRoot(root string) *Sequence {
	if len(root) != len(RootTemplate) {
		panic(fmt.Sprintf("exchange: root %q is not as long as %q", root, RootTemplate))
	}
	r := &Sequence{Name: s.Name, Reconnects: s.Reconnects, Steps: make([]Step, len(s.Steps))}
	for i, step := range s.Steps {
		r.Steps[i] = step
		r.Steps[i].Send = make([]Request, len(step.Send))
		for k, req := range step.Send {
			if len(req.Body) == 0 {
				req.Body = nil
			}
			req.Body = bytes.ReplaceAll(req.Body, []byte(RootTemplate), []byte(root))
			r.Steps[i].Send[k] = req
		}
	}
	return r
}

// hasNullID reports whether the request has an ACL with a null scheme or id.
func (r *Request) hasNullID() bool {
	return slices.ContainsFunc(r.fields(), func(f Field) bool { return f.S == "null" && strings.Contains(f.Name, "acl") })
}

// comparesNullIDs reports whether the request has an ACL of several entries with a null scheme or
// id, which ZooKeeper compares to find duplicates.
func (r *Request) comparesNullIDs() bool {
	several := slices.ContainsFunc(r.fields(), func(f Field) bool { return strings.Contains(f.Name, "acl1.") })
	return several && r.hasNullID()
}

// fromCESU8 joins each pair of three-byte surrogates in a quoted string to its character.
func fromCESU8(quoted string) string {
	s, err := strconv.Unquote(quoted)
	if err != nil {
		return quoted
	}
	surrogate := func(i int) rune {
		if i+3 > len(s) || s[i] != 0xed || s[i+1] < 0xa0 || s[i+2]&0xc0 != 0x80 {
			return 0
		}
		return rune(s[i]&0x0f)<<12 | rune(s[i+1]&0x3f)<<6 | rune(s[i+2]&0x3f)
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if hi, lo := surrogate(i), surrogate(i+3); utf16.IsSurrogate(hi) && utf16.IsSurrogate(lo) {
			b.WriteRune(utf16.DecodeRune(hi, lo))
			i += 5
			continue
		}
		b.WriteByte(s[i])
	}
	return strconv.Quote(b.String())
}

// replaced returns a quoted string with two U+FFFD in place of each character beyond U+FFFF.
func replaced(quoted string) string {
	var b strings.Builder
	for _, r := range quoted {
		if r > 0xffff {
			b.WriteString("\ufffd\ufffd")
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

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
	// Of a connection whose session was resumed, or attempted with a wrong password. After a
	// resumption at another member, closed means that a write through the old connection is not
	// answered.
	NoteVictimClosed Note = "victim closed"
	NoteVictimOpen   Note = "victim open"
)
