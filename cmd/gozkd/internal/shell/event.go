package shell

import (
	"fmt"
	"io"

	"github.com/gozkd/gozkd/client"
)

// eventText is how ZooKeeper's shell prints an event.
func eventText(e client.Event) string {
	path := e.Path
	if path == "" {
		path = "null"
	}
	return fmt.Sprintf("\nWATCHER::\n\nWatchedEvent state:%s type:%s path:%s zxid: %d\n", e.State.KeeperState(), eventName(e), path, int64(e.Zxid))
}

// eventName returns ZooKeeper's name of an event's type.
func eventName(e client.Event) string {
	switch e.Type {
	case client.EventSession:
		return "None"
	case client.EventDataWatchRemoved:
		return "DataWatchRemoved"
	case client.EventChildWatchRemoved:
		return "ChildWatchRemoved"
	case client.EventPersistentWatchRemoved:
		return "PersistentWatchRemoved"
	}
	return e.Type.String()
}

// printEvent writes an event to standard output. A failure to write has no other place to be told.
func (s *Shell) printEvent(e client.Event) { _, _ = io.WriteString(s.out, eventText(e)) }
