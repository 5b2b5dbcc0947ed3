package trail

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/audit"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// sink keeps events as text.
type sink []string

func (s *sink) Record(e *audit.Event) {
	*s = append(*s, strings.TrimRight(fmt.Sprintf("%s %s %s %s", e.Operation, e.Result, e.Znode, e.Detail), " "))
}

// client is a client without identities.
type client struct{}

func (client) AuditEvent(ids []proto.ID) audit.Event { return audit.Event{IDs: ids} }

func (client) LastBytes() time.Time { return time.Unix(1, 0) }

// Without a log nothing is recorded, and nobody waits.
func TestTrail_Off(t *testing.T) {
	var trail Trail
	trail.Auth(client{}, "digest", proto.OK, time.Time{})
	trail.Word(client{}, "srst", true, time.Time{})
	trail.Session(client{}, proto.OpCreateSession, 1, proto.OK, 1)
	trail.Refused(client{}, proto.RequestHeader{Op: proto.OpDelete}, nil, proto.ErrNoAuth, time.Time{})
	if trail.On() || trail.Full() || !trail.Await(nil, nil) {
		t.Error("there is a log")
	}
}

// What has an event, and what the event says.
func TestTrail_Events(t *testing.T) {
	var got sink
	trail := Trail{Log: &got, Reads: []string{"/secret/"}, MaxACLEntries: 1, MaxACLBytes: 100}
	read := func(path string, code proto.ErrCode) {
		trail.ReadBody(client{}, proto.OpGetData, 1, (&proto.PathWatchRequest{Path: path}).Append(nil), nil, code)
	}
	del := jute.AppendInt(jute.AppendString(nil, "/a"), -1)
	for _, c := range []struct {
		name string
		do   func()
		want []string
	}{
		{"a word that changes something", func() { trail.Word(client{}, "crst", false, time.Time{}) }, []string{"fourLetterWord failure  crst"}},
		{"a word that does not", func() { trail.Word(client{}, "ruok", true, time.Time{}) }, nil},
		{"a read in a recorded subtree", func() { read("/secret/a", proto.OK) }, []string{"read success /secret/a getData"}},
		{"a read beside it", func() { read("/secrets", proto.OK) }, nil},
		{"a read that an ACL refused", func() { read("/x", proto.ErrNoAuth) }, []string{"read failure /x getData"}},
		{"a write", func() { trail.Write(&Request{Op: proto.OpDelete, Body: del}) }, []string{"delete success /a"}},
		{"a write whose outcome is unknown", func() {
			trail.Lost(&Request{Op: proto.OpDelete, Body: del})
		}, []string{"delete invoked /a applied or refused by the other members, whose state this server took over"}},
		{"an operation of the server's own", func() { trail.Write(&Request{Op: proto.OpConfigDone}) }, nil},
		{"the end of a session on another server", func() {
			trail.End(&Request{Op: proto.OpCloseSession}, []string{"/e"})
		}, []string{"ephemeralZNodeDeletionOnSessionCloseOrExpire success /e"}},
		{"an ACL that is too long", func() {
			acl := append(proto.OpenACL(), proto.OpenACL()...)
			trail.Refused(client{}, proto.RequestHeader{Op: proto.OpSetACL},
				(&proto.SetACLRequest{Path: "/a", ACL: acl}).Append(nil), proto.ErrInvalidACL, time.Time{})
		}, []string{"setAcl failure /a 1 of 2 entries of the ACL"}},
	} {
		got = nil
		if c.do(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
