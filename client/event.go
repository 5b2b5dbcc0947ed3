package client

import "github.com/gozkd/gozkd/proto"

// The event types that only clients have; package proto has those of servers.
const (
	// EventSession is a change of the session's state. It has no path.
	EventSession proto.EventType = -1
	// EventDataWatchRemoved, EventChildWatchRemoved and EventPersistentWatchRemoved follow a
	// successful RemoveWatches.
	EventDataWatchRemoved       proto.EventType = 5
	EventChildWatchRemoved      proto.EventType = 6
	EventPersistentWatchRemoved proto.EventType = 7
)

// Event is a change of the session's state or a watch event.
type Event struct {
	Type  proto.EventType
	State State      // the session's state when the event arrived
	Path  string     // without the chroot; "" if Type is EventSession
	Zxid  proto.Zxid // of the change; proto.NoZxid if the server does not send it
}

// State is the state of the session.
type State int

// The states. A Client starts in Connecting; the last three are final.
const (
	Connecting State = iota // no connection; only a server can tell whether the session is alive
	Connected
	ReadOnly // connected to a server without a quorum
	AuthFailed
	Expired
	Closed
)

// Ended reports whether the state is final.
func (s State) Ended() bool { return s >= AuthFailed }

// String returns the name that the prompt of ZooKeeper's shell shows.
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
