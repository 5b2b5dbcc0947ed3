// Package audit records who did what: events, two formats of a line, and a log that never makes the
// server wait.
//
// A server makes an event for each write that it answers, and hands the event to a [Sink]. [Log] is
// the Sink that writes lines. Events of one session come in the order of their zxids. An event that
// cannot be kept is counted, and a later line says how many are missing.
//
// An event holds identities, never credentials. The identity of a digest user contains a hash of the
// password, which both formats leave out of the user's name.
package audit

import (
	"time"

	"github.com/gozkd/gozkd/proto"
)

// Operation is what an event is about.
type Operation string

// The operations that ZooKeeper has, by the same names.
const (
	Create      Operation = "create"
	Delete      Operation = "delete"
	SetData     Operation = "setData"
	SetACL      Operation = "setAcl"
	Multi       Operation = "multiOperation" // a multi that failed; for others, each write in it has an event
	Reconfig    Operation = "reconfig"
	ServerStart Operation = "serverStart"
	ServerStop  Operation = "serverStop"
	// DeleteEphemeral is the end of a znode with its session. Every member has an event of it.
	DeleteEphemeral Operation = "ephemeralZNodeDeletionOnSessionCloseOrExpire"
)

// The operations that only gozkd has. They are in the JSON format only.
const (
	OpenSession   Operation = "openSession"
	ResumeSession Operation = "resumeSession"
	CloseSession  Operation = "closeSession"
	ExpireSession Operation = "expireSession" // every member has an event of it
	Authenticate  Operation = "authenticate"
	Read          Operation = "read"
	Word          Operation = "fourLetterWord" // of those that change something
	Admin         Operation = "adminCommand"   // of those that change something or reveal the state
	Collect       Operation = "collect"        // of an empty container or a TTL znode whose time is over
	Dropped       Operation = "auditEventsDropped"
)

// inZooKeeper reports whether ZooKeeper logs the operation.
func (o Operation) inZooKeeper() bool {
	switch o {
	case Create, Delete, SetData, SetACL, Multi, Reconfig, ServerStart, ServerStop, DeleteEphemeral:
		return true
	}
	return false
}

// Result is how an operation ended.
type Result string

// The results.
const (
	Success Result = "success"
	Failure Result = "failure"
	Invoked Result = "invoked" // the end is not known
)

// ResultOf returns the result of an operation that ended with this code.
func ResultOf(code proto.ErrCode) Result {
	if code == proto.OK {
		return Success
	}
	return Failure
}

// Event is one operation. Fields that an operation does not have are zero.
type Event struct {
	Time      time.Time
	Operation Operation
	Result    Result
	Err       proto.ErrCode // of a failure
	Session   proto.SessionID
	Xid       int32      // of the client's request; 0: none
	Zxid      proto.Zxid // of the transaction; 0: none
	// IDs are the identities of the caller; shared, never changed. Nil: the server itself acted.
	IDs    []proto.ID
	Client string // the caller's address and port
	TLS    bool   // the caller's connection is encrypted

	Znode    string
	HasZnode bool             // Znode is known; it may be ""
	Mode     proto.CreateMode // of a create, if HasMode
	HasMode  bool
	InMulti  bool        // the operation is a part of a multi
	ACL      []proto.ACL // of a setACL, as the client sent it; nil: none
	Detail   string
	Count    int64 // of Dropped: how many events are missing
}

// Sink takes the events of a server. Record is called with locks held: it must return at once, and
// must not call the server. It may keep the event.
type Sink interface {
	Record(e *Event)
}

// Backpressure is implemented by a Sink that may make clients wait. The server reads no further
// requests of a client while Full returns true, and looks again when Room is closed. It calls both
// without holding a lock, and goes on without room when it stops.
type Backpressure interface {
	Full() bool
	Room() <-chan struct{}
}

// Counter is implemented by a Sink that counts, for the server's metrics.
type Counter interface {
	// Counts returns how many events were taken, and how many of them are missing in the log.
	Counts() (taken, dropped int64)
}
