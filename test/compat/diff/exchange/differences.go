package exchange

import (
	"bytes"
	"regexp"
	"strings"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// Difference is a deliberate deviation from ZooKeeper. docs/reference/differences.md explains it
// under the same id.
type Difference struct {
	ID string
	// Allows reports whether m, a mismatch of a (ZooKeeper) and b (gozkd), is this difference. nil
	// with Gaps.
	Allows func(a, b *Transcript, m *Mismatch) bool
	// Diverges: the servers' trees differ from there on, so the rest of the sequence proves
	// nothing.
	Diverges bool
	// Gaps: the servers may use zxids for invisible transactions. Zxids that only show progress are
	// then compared by the last visible change up to them.
	Gaps bool
}

// Differences lists the deliberate deviations that sequences can show. Sequences avoid the others
// of docs/reference/differences.md.
func Differences() []Difference {
	return []Difference{
		{
			ID: "wrong-passwd-victim",
			Allows: func(_, _ *Transcript, m *Mismatch) bool {
				return m.A != nil && m.A.Note == NoteVictimClosed && m.B != nil && m.B.Note == NoteVictimOpen
			},
		},
		{
			ID: "resume-timing",
			Allows: func(_, _ *Transcript, m *Mismatch) bool {
				return m.A != nil && m.A.Note == NoteVictimOpen && m.B != nil && m.B.Note == NoteVictimClosed
			},
		},
		{
			ID: "story-frame",
			Allows: func(_, _ *Transcript, m *Mismatch) bool {
				return m.A != nil && m.A.Note == NoteClosed && m.B != nil && m.B.Kind == MessageReply && m.B.Field("xid") == int64(proto.XidPing) &&
					(m.Request == nil || m.Request.Op != proto.OpPing)
			},
			Diverges: true, // it is taken for the reply to the next request
		},
		{
			ID: "tls-empty-frame",
			Allows: func(t, _ *Transcript, m *Mismatch) bool {
				return m.A != nil && m.A.Note == NoteOpen && m.Step < len(t.Sequence.Steps) && bytes.HasPrefix(t.Sequence.Steps[m.Step].Raw, make([]byte, 4))
			},
		},
		{
			ID: "utf-8",
			Allows: func(_, _ *Transcript, m *Mismatch) bool {
				fa, fb := fieldNamed(m.A, m.Field), fieldNamed(m.B, m.Field)
				return fa != nil && fb != nil && fa.Kind == Plain && fa.S != fb.S && (fromCESU8(fa.S) == fb.S || fa.S == replaced(fb.S))
			},
		},
		{
			ID: "null-acl-id",
			Allows: func(_, _ *Transcript, m *Mismatch) bool {
				if m.Request == nil || m.A == nil || m.B == nil || m.A.Err() != proto.ErrMarshallingError || !m.Request.hasNullID() {
					return false
				}
				if m.Request.comparesNullIDs() {
					return true
				}
				return m.B.Err() == proto.ErrInvalidACL
			},
		},
		{
			ID: "null-acl-id-in-multi",
			Allows: func(_, _ *Transcript, m *Mismatch) bool {
				return m.Request != nil && m.Request.Op == proto.OpMulti && m.Request.hasNullID() && m.A != nil && m.B != nil &&
					m.A.Err() == proto.ErrMarshallingError && m.B.Err() == proto.OK && m.B.failedResult() == proto.ErrInvalidACL
			},
			Diverges: true,
		},
		{
			ID: "multi-read-leftovers",
			Allows: func(_, _ *Transcript, m *Mismatch) bool {
				return m.Request != nil && m.Request.Op == proto.OpMultiRead && m.A != nil && m.B != nil && m.Field == "length" &&
					m.A.Err() == m.B.Err() && m.A.Err() != proto.OK && len(m.B.Fields) == 3
			},
		},
		{
			ID: "quota-in-multi",
			Allows: func(_, _ *Transcript, m *Mismatch) bool {
				if m.Request == nil || m.Request.Op != proto.OpMulti || m.A == nil || m.B == nil {
					return false
				}
				if bytes.Contains(m.Request.Body, []byte("/zookeeper_limits")) &&
					(m.A.Err() == proto.ErrMarshallingError || m.B.Err() == proto.ErrMarshallingError) {
					return true // the multi itself makes limits unreadable, or readable
				}
				refused := func(x *Message) bool {
					return x.Kind == MessageReply && x.Err() == proto.OK && x.failedResult() == proto.ErrQuotaExceeded
				}
				// The server that executes the multi may send an event before its reply.
				return (refused(m.A) || refused(m.B)) && (strings.HasPrefix(m.Field, "result") || m.Field == "message")
			},
			Diverges: true,
		},
		{
			ID: "count-of-all",
			Allows: func(_, _ *Transcript, m *Mismatch) bool {
				if m.Request == nil || m.Request.Op != proto.OpGetAllChildrenNumber || m.Field != "value" {
					return false
				}
				d := jute.NewDecoder(m.Request.Body)
				path := d.String()
				return path == "" || path == "/" || strings.HasPrefix(path, "/zookeeper")
			},
		},
		{
			ID:     "reconfig-zxids",
			Allows: showsConfig,
		},
		{
			ID: "zxid-gaps", Gaps: true,
		},
	}
}

// configAddress and configVersion are the parts of /zookeeper/config that no two ensembles share.
var configAddress, configVersion = regexp.MustCompile(`127\.0\.0\.1:[0-9:]+`), regexp.MustCompile(`version=[0-9a-f]+`)

// showsConfig reports whether m is the version or the addresses of the first configuration of the
// ensembles.
func showsConfig(_, _ *Transcript, m *Mismatch) bool {
	if m.Request == nil || m.A == nil || m.B == nil || !bytes.Contains(m.Request.Body, []byte("/zookeeper/config")) {
		return false
	}
	switch m.Field[strings.LastIndex(m.Field, ".")+1:] { // multis put the result before the name
	case "mzxid":
		return m.A.Field(m.Field) == 0
	case "data":
		plain := func(m *Message, name string) string {
			return configVersion.ReplaceAllString(configAddress.ReplaceAllString(fieldNamed(m, name).S, "A"), "V")
		}
		return plain(m.A, m.Field) == plain(m.B, m.Field)
	}
	return false
}

func fieldNamed(m *Message, name string) *Field {
	if m == nil {
		return nil
	}
	for i := range m.Fields {
		if m.Fields[i].Name == name {
			return &m.Fields[i]
		}
	}
	return nil
}
