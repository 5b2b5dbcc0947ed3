package jepsenlite

import (
	"slices"
	"strconv"
	"testing"

	"github.com/gozkd/gozkd/proto"
)

// sequential is a sequential create that was given a name.
func (l *line) sequential(client, asked, made string, call, ret int) {
	l.op(client, proto.OpCreate, asked, call, ret, func(r *Record) {
		r.Parts[0].Mode, r.Parts[0].Made, r.Parts[0].Data = proto.ModePersistentSequential, made, made
	})
}

func TestSequence(t *testing.T) {
	for name, c := range map[string]struct {
		made string
		call int
		want string
	}{
		"rising":   {made: "/s/n-0000000008", call: 30},
		"together": {made: "/s/n-0000000006", call: 15},
		"twice":    {made: "/s/n-0000000007", call: 15, want: "given twice"},
		"falls":    {made: "/s/n-0000000006", call: 30, want: "given after"},
	} {
		t.Run(name, func(t *testing.T) {
			var l line
			l.sequential("sequence-0", "/s/n-", "/s/n-0000000007", 10, 20)
			l.sequential("sequence-1", "/s/n-", c.made, c.call, 40)
			l.sequential("sequence-1", "/other/n-", "/other/n-0000000001", 50, 60)
			want(t, find(t, "sequence", l.h), c.want)
		})
	}
}

func TestBank(t *testing.T) {
	for name, c := range map[string]struct {
		last    int
		checked int32
		want    string
	}{
		"all there":     {last: bankEach, checked: 3},
		"too much":      {last: bankEach + 1, checked: 3, want: "the bank holds 501"},
		"too little":    {last: bankEach - 7, checked: 3, want: "the bank holds 493"},
		"not confirmed": {last: bankEach - 7, checked: 2},
	} {
		t.Run(name, func(t *testing.T) {
			var l line
			m := Record{Client: "bank-0", Op: proto.OpMulti, Call: at(80), Return: at(90)}
			for i := range bankAccounts {
				p, v := "/bank/"+strconv.Itoa(i), bankEach
				if i == bankAccounts-1 {
					v = c.last
				}
				l.op("bank-0", proto.OpGetData, p, 10+i, 20+i, func(r *Record) { r.Parts[0].Got, r.Parts[0].Stat.Version = strconv.Itoa(v), 3 })
				m.Parts = append(m.Parts, Part{Op: proto.OpCheck, Path: p, Version: 3})
			}
			m.Parts[bankAccounts-1].Version = c.checked
			l.add(m)
			want(t, find(t, "bank", l.h), c.want)
		})
	}
}

func TestQueue(t *testing.T) {
	const q1, q2 = "/q/q-0000000001", "/q/q-0000000002"
	for name, c := range map[string]struct {
		more func(l *line)
		last []string
		want string
	}{
		"one taken": {more: func(l *line) { l.op("queue-1", proto.OpDelete, q1, 30, 40, nil) }, last: []string{"q-0000000002"}},
		"taken without an answer": {
			more: func(l *line) { l.op("queue-1", proto.OpDelete, q1, 30, 0, nil) }, last: []string{"q-0000000002"}},
		"taken twice": {more: func(l *line) {
			l.op("queue-1", proto.OpDelete, q1, 30, 40, nil)
			l.op("queue-0", proto.OpDelete, q1, 30, 40, nil)
		}, last: []string{"q-0000000002"}, want: "taken out twice"},
		"lost": {more: func(l *line) { l.op("queue-1", proto.OpDelete, q1, 30, 40, nil) }, want: "nobody took it out"},
		"back again": {
			more: func(l *line) { l.op("queue-1", proto.OpDelete, q1, 30, 40, nil) },
			last: []string{"q-0000000001", "q-0000000002"}, want: "although it was taken out"},
		"invented": {more: func(l *line) {
			l.op("queue-1", proto.OpGetData, q1, 30, 40, func(r *Record) { r.Parts[0].Got = "x" })
		}, last: []string{"q-0000000001", "q-0000000002"}, want: "nobody put in"},
	} {
		t.Run(name, func(t *testing.T) {
			var l line
			l.sequential("queue-0", "/q/q-", q1, 10, 20)
			l.sequential("queue-0", "/q/q-", q2, 20, 30)
			c.more(&l)
			l.op("queue-0", proto.OpGetChildren2, "/q", 60, 70, func(r *Record) { r.Synced, r.Parts[0].Children = at(50), c.last })
			want(t, find(t, "queue", l.h), c.want)
		})
	}
}

func TestLock(t *testing.T) {
	const l1, l2 = "l-0000000001", "l-0000000002"
	saw := func(l *line, client string, call int, children ...string) {
		l.op(client, proto.OpGetChildren2, "/lock", call, call+5, func(r *Record) { r.Parts[0].Children = children })
	}
	back := func(l *line, client, name string, call int) {
		l.op(client, proto.OpDelete, "/lock/"+name, call, call+5, nil)
	}
	for name, c := range map[string]struct {
		play func(l *line)
		want string
	}{
		"in turn": {play: func(l *line) {
			saw(l, "lock-0", 40, l2, l1)
			back(l, "lock-0", l1, 50)
			saw(l, "lock-1", 60, l2)
			back(l, "lock-1", l2, 70)
		}},
		"the delete is not answered yet": {play: func(l *line) {
			saw(l, "lock-0", 40, l1, l2)
			l.op("lock-0", proto.OpDelete, "/lock/"+l1, 50, 90, nil)
			saw(l, "lock-1", 60, l2)
		}},
		"both at once": {play: func(l *line) {
			saw(l, "lock-0", 40, l1, l2)
			saw(l, "lock-1", 50, l2)
			back(l, "lock-0", l1, 60)
		}, want: "held it"},
		"a session that has expired": {play: func(l *line) {
			saw(l, "lock-0", 40, l1, l2)
			saw(l, "lock-1", 50, l2)
			l.op("lock-0", proto.OpDelete, "/lock/"+l1, 60, 70, func(r *Record) { r.Err = proto.ErrNoNode })
		}},
		"tokens fall": {play: func(l *line) {
			saw(l, "lock-1", 40, l2)
			saw(l, "lock-0", 60, l1, l2)
		}, want: "after"},
	} {
		t.Run(name, func(t *testing.T) {
			var l line
			l.sequential("lock-0", "/lock/l-", "/lock/"+l1, 10, 20)
			l.sequential("lock-1", "/lock/l-", "/lock/"+l2, 20, 30)
			c.play(&l)
			want(t, find(t, "lock", l.h), c.want)
		})
	}
}

func TestEphemeral(t *testing.T) {
	all := []string{"a_0", "a_1", "a_2"}
	for name, c := range map[string]struct {
		when   int // of a list
		zxid   proto.Zxid
		list   []string
		closed int // when closeSession was sent; 0: never
		last   []string
		want   string
	}{
		"all":                      {when: 100, zxid: 9, list: all},
		"none, long after":         {when: 1300, zxid: 9},
		"none, of before":          {when: 100, zxid: 4},
		"none, closed":             {when: 100, zxid: 9, closed: 90},
		"none, closed only later":  {when: 100, zxid: 9, closed: 190, want: "after its client was alive"},
		"some":                     {when: 1300, zxid: 9, list: all[:2], want: "2 of the 3"},
		"none, too early":          {when: 1100, zxid: 9, want: "after its client was alive"},
		"there to the end":         {when: 100, zxid: 9, list: all, last: all, want: "in the end"},
		"someone else's after all": {when: 100, zxid: 9, list: append([]string{"b_0"}, all...), want: "1 of the 3"},
	} {
		t.Run(name, func(t *testing.T) {
			var l line
			l.add(Record{Kind: KindOpen, Client: "member-a", Timeout: at(1000), Return: at(5)})
			m := Record{Client: "member-a", Op: proto.OpMulti, Call: at(10), Return: at(20), Zxid: 5}
			for _, n := range all {
				m.Parts = append(m.Parts, Part{Op: proto.OpCreate, Path: "/member/" + n, Made: "/member/" + n})
			}
			l.add(m)
			l.op("member-a", proto.OpSetData, "/member/a_0", 200, 210, zxid(8))
			if c.closed != 0 {
				l.add(Record{Client: "member-a", Op: proto.OpCloseSession, Call: at(c.closed), Return: at(c.closed + 1)})
			}
			list := func(when int, z proto.Zxid, names []string) {
				l.op("member-0", proto.OpGetChildren2, "/member", when, when+5, func(r *Record) {
					r.Conn, r.Session, r.Zxid, r.Parts[0].Children = 7, 7, z, names
				})
			}
			list(c.when, c.zxid, c.list)
			list(9000, 20, c.last)
			want(t, find(t, "ephemeral", l.h), c.want)
		})
	}
}

func TestPipeline(t *testing.T) {
	const p = "/r/pipeline/x"
	sets := func(answered, unanswered int) (versions []int32) {
		for v := range answered {
			versions = append(versions, int32(v+1))
		}
		return append(versions, slices.Repeat([]int32{-1}, unanswered-1)...)
	}
	for name, c := range map[string]struct {
		versions []int32 // of the replies to sets 1, 2, ...; the one after them has no reply
		data     string
		version  int32
		gone     bool
		full     bool // another load was refused
		want     string
	}{
		"all":                  {versions: []int32{1, 2}, data: "2", version: 2},
		"the open one as well": {versions: []int32{1, 2}, data: "3", version: 3},
		"nothing but the create": {
			data: "", version: 0},
		"one twice":                    {versions: []int32{1, 3}, data: "2", version: 3, want: "made version"},
		"the other order":              {versions: []int32{2, 1}, data: "1", version: 2, want: "made version"},
		"one refused":                  {versions: []int32{1, -2, 2}, data: "3", version: 2},
		"one refused, the open one":    {versions: []int32{1, -2, 2}, data: "4", version: 3},
		"one refused, and done":        {versions: []int32{1, -2, 3}, data: "3", version: 3, want: "made version"},
		"one refused, the last lost":   {versions: []int32{1, -2, 2}, data: "1", version: 1, want: "was acknowledged"},
		"one refused, too few in sum":  {versions: []int32{-2, 1, 2}, data: "3", version: 0, want: "holds"},
		"refused unanswered":           {versions: sets(9, 4), data: "9", version: 9, full: true},
		"refused unanswered, then not": {versions: sets(9, 4), data: "13", version: 10, full: true},
		"unanswered, lost":             {versions: sets(9, 4), data: "13", version: 10, want: "holds"},
		"unanswered, too many lost":    {versions: sets(9, 4), data: "13", version: 8, full: true, want: "holds"},
		"adds no data, lost":           {versions: sets(5, 4), data: "9", version: 8, full: true, want: "holds"},
		"open one twice":               {versions: []int32{1, 2}, data: "3", version: 4, want: "holds"},
		"last one lost":                {versions: []int32{1, 2}, data: "1", version: 1, want: "was acknowledged"},
		"never sent":                   {versions: []int32{1, 2}, data: "4", version: 4, want: "were sent"},
		"gone":                         {versions: []int32{1, 2}, gone: true, want: "is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			var l line
			l.op("pipeline-0", proto.OpCreate, p, 10, 20, nil)
			for i, v := range append(c.versions, -1) {
				l.op("pipeline-0", proto.OpSetData, p, 30, 40, func(r *Record) {
					r.Parts[0].Data, r.Parts[0].Stat.Version = strconv.Itoa(i+1), v
					switch v {
					case -1:
						r.Return = 0
					case -2:
						r.Err = proto.ErrQuotaExceeded
					}
				})
			}
			if c.full {
				l.op("set-0", proto.OpCreate, "/r/set/x", 30, 40, func(r *Record) { r.Err = proto.ErrQuotaExceeded })
			}
			l.op("final-1", proto.OpGetChildren2, "/r/pipeline", 60, 70, nil)
			if !c.gone {
				l.op("final-1", proto.OpGetData, p, 60, 70, func(r *Record) {
					r.Parts[0].Got, r.Parts[0].Stat.Version = c.data, c.version
				})
			}
			want(t, find(t, "pipeline", l.h), c.want)
		})
	}
}
