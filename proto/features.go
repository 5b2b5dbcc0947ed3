package proto

import "github.com/gozkd/gozkd/proto/jute"

// FeaturesPath is where a gozkd server tells what it can do besides ZooKeeper's protocol: getData
// returns [Features] as JSON. No list names the path, and other servers have no such znode. See
// docs/adr/0018-pages-of-children.md.
const FeaturesPath = "/zookeeper/features"

// Features is what a server can do besides ZooKeeper's protocol. Clients must ignore fields that
// they do not know.
type Features struct {
	Server  string            `json:"server"` // "gozkd"
	Version string            `json:"version"`
	Ops     map[string]OpCode `json:"ops"` // further operations, by name
	// WatchReplay is ReplayMark if clients that reconnect get missed events.
	WatchReplay string `json:"watchReplay,omitempty"`
}

// PageFlags say what a page of children has, and of which children.
type PageFlags int32

// The flags of a page.
const (
	PageStat       PageFlags = 1
	PageData       PageFlags = 2
	PageEphemeral  PageFlags = 4  // only ephemeral znodes
	PagePersistent PageFlags = 8  // only others
	PageFrom       PageFlags = 16 // begin with StartAfter itself
)

// MaxPageEntries and MaxPageBytes bound a page. The bytes are the reply's, unless it has one entry.
const (
	MaxPageEntries = 10_000
	MaxPageBytes   = 1<<20 - 1
)

// ListPageRequest is the body of listPage, which lists children in the order of their names.
type ListPageRequest struct {
	Path       string
	StartAfter string    // only names after this one
	Limit      int32     // 0: as many as possible
	MaxBytes   int32     // of the reply; 0: as many as possible
	Flags      PageFlags // of what the reply shows
}

// Append appends the encoding.
func (r *ListPageRequest) Append(b []byte) []byte {
	b = jute.AppendString(jute.AppendString(b, r.Path), r.StartAfter)
	return jute.AppendInt(jute.AppendInt(jute.AppendInt(b, r.Limit), r.MaxBytes), int32(r.Flags))
}

// Decode decodes a request.
func (r *ListPageRequest) Decode(d *jute.Decoder) {
	r.Path, r.StartAfter = d.RequiredString(), d.String()
	r.Limit, r.MaxBytes, r.Flags = d.Int(), d.Int(), PageFlags(d.Int())
}

// PageEntry is a child on a page. It has more than a name if the page has Stats or data.
type PageEntry struct {
	Name string
	Err  ErrCode // ErrNoAuth: the caller may not read this child
	Stat Stat
	Data []byte
}

// ListPageResponse is the response of listPage.
type ListPageResponse struct {
	Entries []PageEntry
	Next    *string // StartAfter of the next page; nil: this is the last one
	Parent  Stat
}

// Append appends the encoding of a page with these flags.
func (r *ListPageResponse) Append(b []byte, flags PageFlags) []byte {
	b = jute.AppendInt(b, int32(len(r.Entries)))
	for i := range r.Entries {
		e := &r.Entries[i]
		b = jute.AppendString(b, e.Name)
		if flags&(PageStat|PageData) == 0 {
			continue
		}
		if b = jute.AppendInt(b, int32(e.Err)); e.Err != OK {
			continue
		}
		if flags&PageStat != 0 {
			b = e.Stat.Append(b)
		}
		if flags&PageData != 0 {
			b = jute.AppendBuffer(b, e.Data)
		}
	}
	return r.Parent.Append(jute.AppendNullString(b, r.Next))
}

// Decode decodes a page with these flags.
func (r *ListPageResponse) Decode(d *jute.Decoder, flags PageFlags) {
	n := d.Count(4)
	for range n {
		e := PageEntry{Name: d.String()}
		if flags&(PageStat|PageData) != 0 {
			e.Err = ErrCode(d.Int())
		}
		if flags&PageStat != 0 && e.Err == OK {
			e.Stat.Decode(d)
		}
		if flags&PageData != 0 && e.Err == OK {
			e.Data = d.Buffer()
		}
		if d.Err() != nil {
			return
		}
		r.Entries = append(r.Entries, e)
	}
	r.Next = d.NullString()
	r.Parent.Decode(d)
}
