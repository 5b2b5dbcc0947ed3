package client

import "github.com/gozkd/gozkd/proto"

// The event types that only a client knows; those of servers are in package proto.
const (
	// EventSession is a change of the session's state; it has no path.
	EventSession proto.EventType = -1
	// EventDataWatchRemoved, EventChildWatchRemoved and EventPersistentWatchRemoved follow a RemoveWatches that succeeded.
	EventDataWatchRemoved       proto.EventType = 5
	EventChildWatchRemoved      proto.EventType = 6
	EventPersistentWatchRemoved proto.EventType = 7
)

// Event is a change of the session's state, or what a watch tells.
type Event struct {
	Type  proto.EventType
	State State      // of the session when the event came
	Path  string     // without the chroot; "" if Type is EventSession
	Zxid  proto.Zxid // of the change; proto.NoZxid where the server does not say
}

// State is where the session stands.
type State int

// The states. A Client begins with Connecting and ends with one of the last three.
const (
	Connecting State = iota // no connection; the session may live on, or not: only a server can tell
	Connected
	ReadOnly // connected to a server without a quorum
	AuthFailed
	Expired
	Closed
)

// Ended reports whether the state is one that a Client does not leave.
func (s State) Ended() bool { return s >= AuthFailed }

// String returns ZooKeeper's name of the state, as its shell's prompt shows it.
func (s State) String() string {
	switch s {
	case Connecting:
		return "CONNECTING"
	case Connected:
		return "CONNECTED"
	case ReadOnly:
		return "CONNECTEDREADONLY"
	case AuthFailed:
		return "AUTH_FAILED"
	case Expired:
		return "EXPIRED"
	default:
		return "CLOSED"
	}
}

// KeeperState returns ZooKeeper's name of the state in events.
func (s State) KeeperState() string {
	switch s {
	case Connecting:
		return "Disconnected"
	case Connected:
		return "SyncConnected"
	case ReadOnly:
		return "ConnectedReadOnly"
	case AuthFailed:
		return "AuthFailed"
	case Expired:
		return "Expired"
	default:
		return "Closed"
	}
}
