package shell

import (
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/gozkd/gozkd/proto"
)

// The kinds of lines other than the types of ZooKeeper's events.
const (
	watchBegins = "Watching" // events are seen from now on
	watchData   = "Current"  // the current data, with --data
	watchLost   = "Lost"     // the connection is lost: events from now on may be missed
	watchMissed = "Missed"   // events since a time may have been missed
)

// watchLine is a line of the output of watch.
type watchLine struct {
	at    time.Time
	kind  string
	path  string
	zxid  proto.Zxid // of an event; proto.NoZxid if the server did not send it
	since time.Time  // of watchMissed
	why   string

	withData bool
	data     []byte
	stat     *stat // nil: the znode does not exist
}

// watchTime is JSON's time layout, in local time.
const watchTime = "2006-01-02T15:04:05.000Z07:00"

// String returns the line as text, with a newline.
func (l watchLine) String() string {
	line := l.at.Format(watchTime) + " "
	switch l.kind {
	case watchLost:
		line += "!!! " + l.why + ": events from now on may be missed"
	case watchMissed:
		line += "!!! " + l.why + ": events since " + l.since.Format(watchTime) + " may have been missed"
	default:
		line += l.kind + " " + l.path
	}
	if l.zxid != proto.NoZxid {
		line += " zxid=" + hex(int64(l.zxid))
	}
	switch {
	case !l.withData:
	case l.stat == nil:
		line += " gone"
	case l.data == nil:
		line += fmt.Sprintf(" version=%d data=null", l.stat.Version)
	case !utf8.Valid(l.data):
		line += fmt.Sprintf(" version=%d data_base64=%s", l.stat.Version, *base64Of(l.data).Base64)
	default:
		line += fmt.Sprintf(" version=%d data=%s", l.stat.Version, strconv.Quote(string(l.data)))
	}
	return line + "\n"
}

// MarshalJSON adds data and Stat only if they were asked for; "stat" is null if the znode does not
// exist.
func (l watchLine) MarshalJSON() ([]byte, error) {
	type head struct {
		Time  string `json:"time"`
		Type  string `json:"type"`
		Path  string `json:"path,omitempty"`
		Zxid  string `json:"zxid,omitempty"`
		Since string `json:"since,omitempty"`
		Why   string `json:"why,omitempty"`
	}
	h := head{Time: jsonDate(l.at.UnixMilli()), Type: l.kind, Path: l.path, Why: l.why}
	if l.zxid != proto.NoZxid {
		h.Zxid = hex(int64(l.zxid))
	}
	if !l.since.IsZero() {
		h.Since = jsonDate(l.since.UnixMilli())
	}
	if !l.withData {
		return marshal(h)
	}
	data := jsonData{}
	if l.stat != nil {
		data = dataOf(l.data)
	}
	return marshal(struct {
		head
		jsonData
		Stat *stat `json:"stat"`
	}{h, data, l.stat})
}
