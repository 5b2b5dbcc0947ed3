package datatree

import (
	"iter"

	"github.com/gozkd/gozkd/proto"
)

// Options of a tree. The zero value is for a tree that is never captured.
type Options struct {
	TrackDirty bool // note what changes, for Capture
}

// Header is what the log adds to a request.
type Header struct {
	Zxid   proto.Zxid
	TimeMs int64 // Unix milliseconds, chosen by the leader; becomes Ctime and Mtime
}

// Result is what the client of a request sees. Which fields are set depends on the op.
type Result struct {
	Zxid        proto.Zxid
	Err         proto.ErrCode
	Path        string              // create*: the final path
	Stat        proto.Stat          // create*, setData, setACL: after the change
	Multi       []proto.MultiResult // multi, failed ones too, for which Err is OK; valid until the next Apply
	MultiFailed bool                // multi: nothing of it was done, and Multi says why
	SessionID   proto.SessionID     // createSession, reattachSession
	Why         string              // for refusals that deserve a line in the log: what, where, size and limit
}

// ACLRef is a handle to an immutable access control list.
type ACLRef struct{ acl *acl }

// Event is something that watches may wait for.
type Event struct {
	Type proto.EventType
	Path string
	Zxid proto.Zxid
	ACL  ACLRef // of the znode at Path at that moment: who may not read it is not told
}

// Caller is who reads.
type Caller struct {
	IDs     []proto.ID
	SkipACL bool
}

// SessionInfo describes a session.
type SessionInfo struct {
	ID            proto.SessionID
	TimeoutMs     int32
	ConnEpoch     proto.Zxid // zxid of the createSession or reattachSession that made its current connection
	Server        uint8      // member id of the server that holds this connection
	Passwd        [proto.PasswdBytes]byte
	NumEphemerals int
}

// CreateSessionBody is the body of createSession and reattachSession.
type CreateSessionBody struct {
	TimeoutMs int32
	Passwd    [proto.PasswdBytes]byte
}

type acl struct{}

// Tree is the state.
type Tree struct{}

// Changes is what a Capture took.
type Changes struct{}

// The API, to be compiled against; its implementation follows.
func (b *CreateSessionBody) Append(p []byte) []byte                               { panic("not yet") }
func New(opts Options) *Tree                                                      { panic("not yet") }
func (t *Tree) Apply(h Header, r *Request) (Result, []Event)                      { panic("not yet") }
func (t *Tree) SetLastZxid(z proto.Zxid)                                          { panic("not yet") }
func (t *Tree) LastZxid() proto.Zxid                                              { panic("not yet") }
func (t *Tree) Digest() uint64                                                    { panic("not yet") }
func (t *Tree) Check() error                                                      { panic("not yet") }
func (t *Tree) Exists(path string, c Caller) (proto.Stat, proto.ErrCode)          { panic("not yet") }
func (t *Tree) GetData(path string, c Caller) ([]byte, proto.Stat, proto.ErrCode) { panic("not yet") }
func (t *Tree) AppendChildren(b []byte, path string, c Caller) ([]byte, proto.Stat, proto.ErrCode) {
	panic("not yet")
}
func (t *Tree) GetACL(path string, c Caller) ([]proto.ACL, proto.Stat, proto.ErrCode) {
	panic("not yet")
}
func (t *Tree) AllChildrenNumber(path string, c Caller) (int32, proto.ErrCode)       { panic("not yet") }
func (t *Tree) Ephemerals(session proto.SessionID, prefix *string) []string          { panic("not yet") }
func (t *Tree) EphemeralsBySession() iter.Seq2[proto.SessionID, []string]            { panic("not yet") }
func (t *Tree) Readable(ref ACLRef, c Caller) bool                                   { panic("not yet") }
func (t *Tree) Lookup(path string) (mzxid, pzxid proto.Zxid, ok bool)                { panic("not yet") }
func (t *Tree) Session(id proto.SessionID) (SessionInfo, bool)                       { panic("not yet") }
func (t *Tree) Sessions() iter.Seq[SessionInfo]                                      { panic("not yet") }
func (t *Tree) NumSessions() int                                                     { panic("not yet") }
func (t *Tree) NumZnodes() int                                                       { panic("not yet") }
func (t *Tree) NumEphemerals() int                                                   { panic("not yet") }
func (t *Tree) ApproximateDataSize() int64                                           { panic("not yet") }
func (t *Tree) Collectable(nowMs, neverUsedMs int64, limit int) []string             { panic("not yet") }
func (t *Tree) Capture() *Changes                                                    { panic("not yet") }
func (c *Changes) Len() int                                                          { panic("not yet") }
func (c *Changes) Range(yield func(key, value []byte) error) error                   { panic("not yet") }
func Restore(opts Options, kv iter.Seq2[[]byte, []byte]) (*Tree, error)              { panic("not yet") }
