package shell

import (
	"fmt"
	"io"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/gozkd/gozkd/proto"
)

// What a line of a watch says beside the types of ZooKeeper's events.
const (
	watchBegins = "Watching" // from now on events are seen
	watchData   = "Current"  // with --data: what there is now
	watchLost   = "Lost"     // the connection: what happens from now on may go unseen
	watchMissed = "Missed"   // what happened since may have gone unseen
)

// watchLine is one line of a watch.
type watchLine struct {
	at   time.Time
	kind string
	path string
	zxid proto.Zxid // of an event, proto.NoZxid if the server does not say
	// since is when it began that events may have been missed.
	since time.Time
	why   string

	withData bool
	data     []byte
	stat     *stat // of data; nil: there is no such znode any more
}

// watchTime is how lines have times: as JSON does, in local time.
const watchTime = "2006-01-02T15:04:05.000Z07:00"

func (l watchLine) text(out, _ io.Writer) {
	line := l.at.Format(watchTime) + " "
	switch l.kind {
	case watchLost:
		line += "!!! " + l.why + ": what happens from now on may be missed"
	case watchMissed:
		line += "!!! " + l.why + ": events since " + l.since.Format(watchTime) + " may have been missed"
	default:
		line += l.kind + " " + l.path
	}
	if l.zxid != proto.NoZxid {
		line += " zxid=" + hex(int64(l.zxid))
	}
	if l.withData {
		line += l.dataText()
	}
	_, _ = fmt.Fprintln(out, line)
}

// dataText has the data on one line, quoted.
func (l watchLine) dataText() string {
	switch {
	case l.stat == nil:
		return " gone"
	case l.data == nil:
		return fmt.Sprintf(" version=%d data=null", l.stat.Version)
	case !utf8.Valid(l.data):
		return fmt.Sprintf(" version=%d data_base64=%s", l.stat.Version, *base64Of(l.data).Base64)
	}
	return fmt.Sprintf(" version=%d data=%s", l.stat.Version, strconv.Quote(string(l.data)))
}

// MarshalJSON has the data and its Stat only where they were asked for, and "stat":null where there is no such znode.
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
