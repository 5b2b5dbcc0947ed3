package proto

import (
	"strconv"

	"github.com/gozkd/gozkd/proto/jute"
)

// EventType says what happened to a watched path.
type EventType int32

// The events that a server sends.
const (
	EventCreated         EventType = 1
	EventDeleted         EventType = 2
	EventDataChanged     EventType = 3
	EventChildrenChanged EventType = 4
)

// String returns ZooKeeper's name of the event.
func (t EventType) String() string {
	switch t {
	case EventCreated:
		return "NodeCreated"
	case EventDeleted:
		return "NodeDeleted"
	case EventDataChanged:
		return "NodeDataChanged"
	case EventChildrenChanged:
		return "NodeChildrenChanged"
	}
	return "event(" + strconv.Itoa(int(t)) + ")"
}

// StateConnected is the state in every event that a server sends.
const StateConnected int32 = 3

// WatcherEvent is the body of an event frame; its header is {XidEvent, zxid, OK}.
type WatcherEvent struct {
	Type  EventType
	State int32
	Path  string
}

// Append appends the encoding.
func (e *WatcherEvent) Append(b []byte) []byte {
	return jute.AppendString(jute.AppendInt(jute.AppendInt(b, int32(e.Type)), e.State), e.Path)
}

// Decode reads the record.
func (e *WatcherEvent) Decode(d *jute.Decoder) {
	e.Type, e.State, e.Path = EventType(d.Int()), d.Int(), d.String()
}

// SetWatchesRequest is the body of setWatches and setWatches2. A nil vector is null.
type SetWatchesRequest struct {
	RelativeZxid                    Zxid
	Data, Exist, Child              []string
	Persistent, PersistentRecursive []string // setWatches2 only
}

// Append appends the body for op.
func (r *SetWatchesRequest) Append(b []byte, op OpCode) []byte {
	b = jute.AppendLong(b, int64(r.RelativeZxid))
	b = jute.AppendStrings(b, r.Data)
	b = jute.AppendStrings(b, r.Exist)
	b = jute.AppendStrings(b, r.Child)
	if op == OpSetWatches2 {
		b = jute.AppendStrings(b, r.Persistent)
		b = jute.AppendStrings(b, r.PersistentRecursive)
	}
	return b
}

// Decode reads the body of op.
func (r *SetWatchesRequest) Decode(d *jute.Decoder, op OpCode) {
	r.RelativeZxid = Zxid(d.Long())
	r.Data, r.Exist, r.Child = d.Strings(), d.Strings(), d.Strings()
	if op == OpSetWatches2 {
		r.Persistent, r.PersistentRecursive = d.Strings(), d.Strings()
	}
}

// AddWatchMode is the mode field of addWatch.
type AddWatchMode int32

// The modes of addWatch.
const (
	AddWatchPersistent          AddWatchMode = 0
	AddWatchPersistentRecursive AddWatchMode = 1
)

// ReplayMark is a path on which a client sets a persistent watch to be told, when it sets its
// watches again, whether the events that it missed have come: NodeDataChanged if they have,
// NodeDeleted if that is not known. Other servers than gozkd say nothing. See
// docs/adr/0017-replay.md.
const ReplayMark = "/zookeeper/replay"

// AddWatchRequest is the body of addWatch.
type AddWatchRequest struct {
	Path string
	Mode AddWatchMode
}

// Append appends the encoding.
func (r *AddWatchRequest) Append(b []byte) []byte {
	return jute.AppendInt(jute.AppendString(b, r.Path), int32(r.Mode))
}

// Decode reads the record. A null path is read as "".
func (r *AddWatchRequest) Decode(d *jute.Decoder) {
	r.Path, r.Mode = d.String(), AddWatchMode(d.Int())
}

// WatcherType selects watches in checkWatches and removeWatches.
type WatcherType int32

// The watcher types. Servers know 4 and 5 since 3.9.
const (
	WatcherChildren            WatcherType = 1
	WatcherData                WatcherType = 2
	WatcherAny                 WatcherType = 3
	WatcherPersistent          WatcherType = 4
	WatcherPersistentRecursive WatcherType = 5
)

// Valid reports whether t is a known type.
func (t WatcherType) Valid() bool { return t >= WatcherChildren && t <= WatcherPersistentRecursive }

// WatchesRequest is the body of checkWatches and removeWatches.
type WatchesRequest struct {
	Path string
	Type WatcherType
}

// Append appends the encoding.
func (r *WatchesRequest) Append(b []byte) []byte {
	return jute.AppendInt(jute.AppendString(b, r.Path), int32(r.Type))
}

// Decode reads the record. A null path is read as "".
func (r *WatchesRequest) Decode(d *jute.Decoder) {
	r.Path, r.Type = d.String(), WatcherType(d.Int())
}
