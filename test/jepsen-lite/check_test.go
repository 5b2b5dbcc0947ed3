package jepsenlite

import (
	"testing"

	"github.com/gozkd/gozkd/proto"
)

func zxid(z proto.Zxid) func(*Record) { return func(r *Record) { r.Zxid = z } }

func TestZxidOrder(t *testing.T) {
	for name, c := range map[string]struct {
		second proto.Zxid
		call   int
		want   string
	}{
		"rising":                {second: 6, call: 30},
		"together":              {second: 4, call: 15},
		"falls":                 {second: 4, call: 30, want: "after one had got"},
		"twice":                 {second: 5, call: 15, want: "two writes"},
		"falls one tick behind": {second: 4, call: 21, want: "after one had got"},
	} {
		t.Run(name, func(t *testing.T) {
			var l line
			l.op("set-0", proto.OpCreate, "/a", 10, 20, zxid(5))
			l.op("set-1", proto.OpCreate, "/b", c.call, 40, zxid(c.second))
			want(t, find(t, "zxid-order", l.h), c.want)
		})
	}
}

func TestZxidOrder_SyncedRead(t *testing.T) {
	for synced, word := range map[int]string{15: "", 30: "synced read"} {
		var l line
		l.op("set-0", proto.OpCreate, "/a", 10, 20, zxid(5))
		l.op("set-1", proto.OpGetData, "/a", 35, 40, func(r *Record) { r.Synced, r.Zxid = at(synced), 4 })
		want(t, find(t, "zxid-order", l.h), word)
	}
}

func TestSessionZxid(t *testing.T) {
	for second, word := range map[proto.Zxid]string{5: "", 9: "", 4: "after"} {
		var l line
		l.op("set-0", proto.OpGetData, "/a", 10, 20, zxid(5))
		l.op("set-0", proto.OpGetData, "/a", 30, 40, func(r *Record) { r.Conn, r.Session, r.Member, r.Zxid = 2, 1, 2, second })
		l.op("set-1", proto.OpGetData, "/a", 30, 40, func(r *Record) { r.Session, r.Zxid = 7, 1 })
		want(t, find(t, "session-zxid", l.h), word)
	}
}

func TestSet(t *testing.T) {
	for name, c := range map[string]struct {
		list []string
		want string
	}{
		"all":      {list: []string{"acked", "open"}},
		"without":  {list: []string{"acked"}},
		"lost":     {list: []string{"open"}, want: "does not have"},
		"invented": {list: []string{"acked", "x"}, want: "nobody"},
		"refused":  {list: []string{"acked", "refused"}, want: "had failed"},
	} {
		t.Run(name, func(t *testing.T) {
			var l line
			l.op("set-0", proto.OpCreate, "/set/acked", 10, 20, nil)
			l.op("set-0", proto.OpCreate, "/set/open", 10, 0, nil)
			l.op("set-0", proto.OpCreate, "/set/refused", 10, 20, func(r *Record) { r.Err = proto.ErrNoNode })
			l.op("set-1", proto.OpGetChildren2, "/set", 40, 50, func(r *Record) { r.Synced, r.Parts[0].Children = at(30), c.list })
			want(t, find(t, "set", l.h), c.want)
		})
	}
}
