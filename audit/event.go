// Package audit records the actions of clients: events, two formats of a line, and a log that never
// makes the server wait.
//
// A server hands an event for each write that it answers to a [Sink]. [Log] is the Sink that writes
// lines. The events of a session come in the order of their zxids. Events that cannot be kept are
// counted, and a later line says how many are missing.
//
// An event holds identities, never credentials. The identity of a digest user contains a hash of
// the password, which both formats leave out of the user's name.
package audit

import (
	"slices"
	"time"

	"github.com/gozkd/gozkd/proto"
)

// Operation is the kind of an event.
type Operation string

// The operations that ZooKeeper has, by the same names.
const (
	Create      Operation = "create"
	Delete      Operation = "delete"
	SetData     Operation = "setData"
	SetACL      Operation = "setAcl"
	Multi       Operation = "multiOperation" // a multi that failed; otherwise each write in a multi has an event
	Reconfig    Operation = "reconfig"
	ServerStart Operation = "serverStart"
	ServerStop  Operation = "serverStop"
	// DeleteEphemeral: an ephemeral znode ended with its session, which every member records.
	DeleteEphemeral Operation = "ephemeralZNodeDeletionOnSessionCloseOrExpire"
)

// The operations that only gozkd has. They are in the JSON format only.
const (
	OpenSession   Operation = "openSession"
	ResumeSession Operation = "resumeSession"
	CloseSession  Operation = "closeSession"
	ExpireSession Operation = "expireSession" // recorded by every member
	Authenticate  Operation = "authenticate"
	Read          Operation = "read"
	Word          Operation = "fourLetterWord" // that changes something
	Admin         Operation = "adminCommand"   // that changes something or reveals the state
	Collect       Operation = "collect"        // an empty container or an expired TTL znode was deleted
	Dropped       Operation = "auditEventsDropped"
)

// inZooKeeper reports whether ZooKeeper logs the operation.
func (o Operation) inZooKeeper() bool {
	return slices.Contains([]Operation{
		Create, Delete, SetData, SetACL, Multi, Reconfig, ServerStart, ServerStop, DeleteEphemeral,
	}, o)
}

// Result is how an operation ended.
type Result string

// The results.
const (
	Success Result = "success"
	Failure Result = "failure"
	Invoked Result = "invoked" // the outcome is not known
)

// ResultOf returns the result of an operation that ended with this code.
func ResultOf(code proto.ErrCode) Result {
	if code == proto.OK {
		return Success
	}
	return Failure
}

// Event describes an operation. Fields that do not apply to the operation are zero.
type Event struct {
	Time      time.Time
	Operation Operation
	Result    Result
	Err       proto.ErrCode // of a failure
	Session   proto.SessionID
	Xid       int32      // of the client's request; 0: none
	Zxid      proto.Zxid // of the transaction; 0: none
	// IDs are the caller's identities, shared and not to be changed. Nil: the server itself acted.
	IDs    []proto.ID
	Client string // the caller's address and port
	Origin string // how the caller came, if not by ZooKeeper's protocol: "http"
	TLS    bool   // the caller's connection is encrypted

	Znode    string
	HasZnode bool             // Znode is set, if only to ""
	Mode     proto.CreateMode // of a create, if HasMode
	HasMode  bool
	InMulti  bool        // the operation is a part of a multi
	ACL      []proto.ACL // of a setACL, as the client sent it; nil: none
	Detail   string
	// Count is of Dropped and of refused admin commands: how many events are missing before.
	Count int64
}

// Sink takes the events of a server. Record is called with locks held: it must return at once and
// must not call the server. Record may retain the event.
type Sink interface {
	Record(e *Event)
}

// Backpressure is implemented by a Sink that may make clients wait. While Full returns true, the
// server reads no further requests of clients, and calls Full again when Room is closed. The server
// calls both without holding a lock, and does not wait while it stops.
type Backpressure interface {
	Full() bool
	Room() <-chan struct{}
}

// Counter is implemented by a Sink that counts, for the server's metrics.
type Counter interface {
	// Counts returns the number of recorded events, and how many of them are missing in the log.
	Counts() (taken, dropped int64)
}
