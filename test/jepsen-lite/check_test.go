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
		"partial":  {list: []string{"acked", "undone"}, want: "nobody"},
	} {
		t.Run(name, func(t *testing.T) {
			var l line
			l.op("set-0", proto.OpCreate, "/set/acked", 10, 20, nil)
			l.op("set-0", proto.OpCreate, "/set/open", 10, 0, nil)
			l.op("set-0", proto.OpCreate, "/set/refused", 10, 20, func(r *Record) { r.Err = proto.ErrNoNode })
			l.add(Record{Client: "set-0", Op: proto.OpMulti, Call: at(10), Return: at(20), Err: proto.ErrBadVersion,
				Parts: []Part{{Op: proto.OpCreate, Path: "/set/undone"}, {Op: proto.OpCheck, Path: "/set"}}})
			l.op("set-1", proto.OpGetChildren2, "/set", 40, 50, func(r *Record) { r.Synced, r.Parts[0].Children = at(30), c.list })
			want(t, find(t, "set", l.h), c.want)
		})
	}
}

func TestReplyOrder(t *testing.T) {
	for name, c := range map[string]struct {
		numbers []int
		want    string
	}{
		"in order":    {numbers: []int{1, 2, 3}},
		"overtaken":   {numbers: []int{1, 3, 2}, want: "follows"},
		"left out":    {numbers: []int{1, 3}, want: "follows"},
		"not first":   {numbers: []int{2}, want: "first reply"},
		"not awaited": {numbers: []int{1, 0}, want: "nobody waits"},
	} {
		t.Run(name, func(t *testing.T) {
			var l line
			for i, n := range c.numbers {
				l.op("set-0", proto.OpCreate, "/a", 10, 20+i, func(r *Record) { r.Number = n })
			}
			l.op("set-0", proto.OpCreate, "/a", 10, 0, func(r *Record) { r.Number = 4 })
			l.op("set-0", proto.OpCreate, "/a", 10, 90, func(r *Record) { r.Conn, r.Number = 2, 1 })
			want(t, find(t, "reply-order", l.h), c.want)
		})
	}
}

func TestSessionView(t *testing.T) {
	stat := func(mzxid proto.Zxid) func(*Record) {
		return func(r *Record) { r.Zxid, r.Parts[0].Stat.Mzxid = 9, mzxid }
	}
	for _, first := range []proto.OpCode{proto.OpSetData, proto.OpGetData, proto.OpExists} {
		for second, word := range map[proto.Zxid]string{5: "", 6: "", 4: "as of"} {
			var l line
			l.op("watch-0", first, "/a", 10, 20, stat(5))
			l.op("watch-0", proto.OpGetData, "/a", 30, 40, func(r *Record) {
				stat(second)(r)
				r.Conn, r.Session = 2, 1
			})
			l.op("watch-1", proto.OpGetData, "/a", 30, 40, func(r *Record) {
				stat(1)(r)
				r.Conn = 3
			})
			want(t, find(t, "session-view", l.h), word)
		}
	}
}

func TestSessionView_OwnCreate(t *testing.T) {
	for mzxid, word := range map[proto.Zxid]string{5: "", 4: "as of"} {
		var l line
		l.op("watch-0", proto.OpCreate, "/a", 10, 20, func(r *Record) { r.Zxid, r.Parts[0].Made = 5, "/a" })
		l.op("watch-0", proto.OpGetData, "/a", 30, 40, func(r *Record) { r.Zxid, r.Parts[0].Stat.Mzxid = 6, mzxid })
		want(t, find(t, "session-view", l.h), word)
	}
}

func TestSessionLost(t *testing.T) {
	for refused, word := range map[int]string{1100: "", 1020: "", 900: "was refused"} {
		var l line
		l.add(Record{Kind: KindOpen, Client: "set-0", Timeout: at(1000), Return: at(5)})
		l.op("set-0", proto.OpCreate, "/a", 20, 30, nil)
		l.op("set-0", proto.OpGetData, "/a", 500, 510, nil) // only its own server need know of that
		l.add(Record{Kind: KindOpen, Client: "set-0", Conn: 2, Session: 99, Refused: true, Return: at(refused)})
		want(t, find(t, "session-lost", l.h), word)
	}
	for refused, word := range map[int]string{2775: "", 2765: "was refused"} { // 2 s of pause count as 1.75 s
		var l line
		l.add(Record{Kind: KindOpen, Client: "set-0", Timeout: at(1000), Return: at(5)})
		l.op("set-0", proto.OpCreate, "/a", 20, 30, nil)
		l.add(Record{Kind: KindPause, Call: at(100), Return: at(2100)})
		l.add(Record{Kind: KindOpen, Client: "set-0", Conn: 2, Session: 99, Refused: true, Return: at(refused)})
		want(t, find(t, "session-lost", l.h), word)
	}
}

func TestOneState(t *testing.T) {
	for name, c := range map[string]struct {
		data    string
		version int32
		set     proto.Zxid
		want    string
	}{
		"same":          {data: "x", version: 1, set: 5},
		"other data":    {data: "y", version: 1, set: 5, want: "as of"},
		"other version": {data: "x", version: 2, set: 5, want: "as of"},
		"set of old":    {data: "x", version: 1, set: 4, want: "says that it was"},
	} {
		t.Run(name, func(t *testing.T) {
			var l line
			l.op("watch-0", proto.OpSetData, "/a", 10, 20, func(r *Record) {
				r.Zxid, r.Parts[0].Data, r.Parts[0].Stat = 5, "x", proto.Stat{Mzxid: c.set, Version: 1}
			})
			l.op("watch-1", proto.OpGetData, "/a", 30, 40, func(r *Record) {
				r.Zxid, r.Parts[0].Got, r.Parts[0].Stat = 9, c.data, proto.Stat{Mzxid: 5, Version: c.version}
			})
			want(t, find(t, "one-state", l.h), c.want)
		})
	}
}

func TestReplicas(t *testing.T) {
	for name, c := range map[string]struct {
		more func(l *line)
		want string
	}{
		"equal": {more: func(l *line) { l.last("final-2", "x", 1, "b", "a") }},
		"other data": {
			more: func(l *line) { l.last("final-2", "y", 1, "a", "b") }, want: "differs"},
		"other stat": {
			more: func(l *line) { l.last("final-2", "x", 2, "a", "b") }, want: "differs"},
		"other children": {
			more: func(l *line) { l.last("final-2", "x", 1, "a") }, want: "differs"},
		"one more": {more: func(l *line) {
			l.last("final-2", "x", 1, "a", "b")
			l.op("final-2", proto.OpGetData, "/b", 30, 40, nil)
		}, want: "no like on member 1"},
		"one less": {more: func(l *line) {
			l.op("final-2", proto.OpGetData, "/a", 30, 40, func(r *Record) { r.Parts[0].Got, r.Parts[0].Stat.Version = "x", 1 })
		}, want: "no like at final-2"},
	} {
		t.Run(name, func(t *testing.T) {
			var l line
			l.last("final-1", "x", 1, "a", "b")
			c.more(&l)
			want(t, find(t, "replicas", l.h), c.want)
		})
	}
}

// last is a last look at one znode.
func (l *line) last(client, data string, version int32, children ...string) {
	l.op(client, proto.OpGetData, "/a", 30, 40, func(r *Record) { r.Parts[0].Got, r.Parts[0].Stat.Version = data, version })
	l.op(client, proto.OpGetChildren2, "/a", 30, 40, func(r *Record) { r.Parts[0].Children = children })
}

func TestFull(t *testing.T) {
	full := func(r *Record) { r.Err = proto.ErrQuotaExceeded }
	set := func(value string) func(r *Record) {
		return func(r *Record) { r.Parts[0].Data, r.Err = value, proto.ErrQuotaExceeded }
	}
	multi := func(parts ...Part) func(r *Record) {
		return func(r *Record) { r.Parts, r.Err = parts, proto.ErrQuotaExceeded }
	}
	for name, c := range map[string]struct {
		op      proto.OpCode
		refused func(r *Record)
		want    string
	}{
		"create":                    {proto.OpCreate, full, ""},
		"set of more":               {proto.OpSetData, set("abc"), ""},
		"set of as much":            {proto.OpSetData, set("ab"), "adds no data"},
		"set of less":               {proto.OpSetData, set("a"), "adds no data"},
		"delete":                    {proto.OpDelete, full, "adds no data"},
		"read":                      {proto.OpGetData, full, "adds no data"},
		"sync":                      {proto.OpSync, full, "adds no data"},
		"multi of checks":           {proto.OpMulti, multi(Part{Op: proto.OpCheck, Path: "/a"}), "adds no data"},
		"multi of a delete":         {proto.OpMulti, multi(Part{Op: proto.OpDelete, Path: "/a"}), "adds no data"},
		"multi with a set of more":  {proto.OpMulti, multi(Part{Op: proto.OpCheck, Path: "/a"}, Part{Op: proto.OpSetData, Path: "/a", Data: "abc"}), ""},
		"multi with a set of less":  {proto.OpMulti, multi(Part{Op: proto.OpSetData, Path: "/a", Data: "a"}), "adds no data"},
		"multi with another create": {proto.OpMulti, multi(Part{Op: proto.OpCreate, Path: "/b"}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			var l line
			l.op("set-0", proto.OpCreate, "/a", 10, 20, func(r *Record) { r.Parts[0].Data = "ab" })
			l.op("set-0", proto.OpSetData, "/early", 11, 21, set(""))
			l.op("set-0", proto.OpCreate, "/early", 15, 25, nil)
			l.op("set-0", c.op, "/a", 30, 40, c.refused)
			want(t, find(t, "full", l.h), c.want)
		})
	}
}
