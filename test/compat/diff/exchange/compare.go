package exchange

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/gozkd/gozkd/proto"
)

// Mismatch is a place where two transcripts of one sequence differ.
type Mismatch struct {
	Step    int      // index of the step; the number of steps plus the slot for the flush
	Request *Request // answered by the messages, if any
	A, B    *Message // nil: missing
	Field   string   // that differs; "message" if the kinds of the messages differ
	Detail  string   // empty if the messages are enough
}

// Signature names the kind of mismatch, without values that vary between sequences.
func (m *Mismatch) Signature() string {
	op := ""
	switch {
	case m.Request != nil:
		op = m.Request.Op.String() + " "
	case m.A != nil:
		op = string(m.A.Kind) + " "
	}
	what := m.Field
	if m.A != nil && m.B != nil && m.A.Kind == MessageReply && m.B.Kind == MessageReply && m.A.Err() != m.B.Err() {
		what = fmt.Sprintf("err %d / %d", m.A.Err(), m.B.Err())
	} else if what == "message" {
		what = fmt.Sprintf("%s / %s", kindOf(m.A), kindOf(m.B))
	}
	return op + what
}

// String describes the mismatch on a few lines.
func (m *Mismatch) String() string {
	return fmt.Sprintf("step %d, %s%s\n    a: %v\n    b: %v", m.Step, m.Signature(), m.Detail, m.A, m.B)
}

func kindOf(m *Message) string {
	switch {
	case m == nil:
		return "nothing"
	case m.Kind == MessageNote:
		return string(m.Note)
	}
	return string(m.Kind)
}

// Compare returns the first mismatch of a and b that no difference allows, or nil. It counts in
// allowed, by id, how often each difference was allowed, and stops after a difference that
// diverges. Both transcripts must be of the same sequence with the same root.
func Compare(a, b *Transcript, differences []Difference, allowed map[string]int) *Mismatch {
	c := comparison{a: a, b: b, differences: differences, allowed: allowed,
		timesA: make(map[int64]int64), timesB: make(map[int64]int64)}
	closeA, closeB := a.closeZxids(), b.closeZxids()
	steps := len(a.Steps)
	places := make([]int, steps)
	for i := range places {
		places[i] = i
	}
	slots := maps.Clone(a.Flush)
	maps.Copy(slots, b.Flush)
	for _, slot := range slices.Sorted(maps.Keys(slots)) {
		places = append(places, steps+slot)
	}
	for _, i := range places {
		listA, listB := a.Messages(i), b.Messages(i)
		sortClosing(listA, listB, closeA, closeB)
		for k := range max(len(listA), len(listB)) {
			m := c.messages(i, at(listA, k), at(listB, k))
			if m != nil && !c.allows(m) {
				return m
			}
			if c.diverged {
				return nil
			}
			if m != nil && m.Field == "message" {
				break // later messages on this connection are out of step
			}
		}
	}
	return c.zxids()
}

func at(list []Message, i int) *Message {
	if i < len(list) {
		return &list[i]
	}
	return nil
}

// comparison is the state of a Compare call.
type comparison struct {
	a, b           *Transcript
	differences    []Difference
	allowed        map[string]int
	pairs          []zxidPair
	timesA, timesB map[int64]int64 // time of each zxid
	diverged       bool
}

// zxidPair holds the zxids of both servers in the same place.
type zxidPair struct {
	a, b   int64
	change bool // of a change that a client can see; otherwise only the server's progress
	m      Mismatch
}

func (c *comparison) allows(m *Mismatch) bool {
	for i := range c.differences {
		d := &c.differences[i]
		if d.Allows != nil && d.Allows(c.a, c.b, m) {
			c.allowed[d.ID]++
			c.diverged = c.diverged || d.Diverges
			return true
		}
	}
	return false
}

// messages compares two messages in the same place.
func (c *comparison) messages(step int, a, b *Message) *Mismatch {
	m := Mismatch{Step: step, A: a, B: b, Field: "message"}
	for _, x := range []*Message{a, b} {
		if x != nil && x.Kind == MessageReply && step < len(c.a.Steps) && x.Index < len(c.a.Sequence.Steps[step].Send) {
			m.Request = &c.a.Sequence.Steps[step].Send[x.Index]
			break
		}
	}
	if a == nil || b == nil || a.Kind != b.Kind || a.Note != b.Note {
		return &m
	}
	for i := range max(len(a.Fields), len(b.Fields)) {
		if i >= len(a.Fields) || i >= len(b.Fields) {
			m.Field = "length"
			return &m
		}
		fa, fb := &a.Fields[i], &b.Fields[i]
		m.Field = fa.Name
		if fa.Name != fb.Name || fa.Kind != fb.Kind || !c.fields(fa, fb) {
			return &m
		}
	}
	// Only if the messages agree otherwise: an allowed difference must not cause a second finding.
	for i := range a.Fields {
		if a.Fields[i].Kind == ZxidOf {
			m.Field = a.Fields[i].Name
			c.pairs = append(c.pairs, zxidPair{a.Fields[i].N, b.Fields[i].N, i != headerZxid || a.showsChange(), m})
		}
	}
	return nil
}

// fields compares two fields of the same name by their kind. Zxids are compared later.
func (c *comparison) fields(a, b *Field) bool {
	switch a.Kind {
	case ZxidOf:
		// 0 and -1 are special values, not zxids: see ReplyHeader in
		// ZooKeeperServer.processPacket and WatcherEvent.
		return a.N > 0 && b.N > 0 || a.N == b.N
	case TimeMs:
		return (a.N == 0) == (b.N == 0) && sameTime(c.timesA, a) && sameTime(c.timesB, b)
	case Owner:
		return c.a.owner(a.N) == c.b.owner(b.N)
	case Secret:
		return c.a.secret(a) == c.b.secret(b)
	}
	return a.N == b.N && a.S == b.S
}

// sameTime checks that all effects of a transaction have the same time.
func sameTime(times map[int64]int64, f *Field) bool {
	t, ok := times[f.Zxid]
	if !ok {
		times[f.Zxid] = f.N
		return true
	}
	return t == f.N
}

// owner names a session, by its slot if the transcript knows it.
func (t *Transcript) owner(id int64) string {
	if id == 0 {
		return "none"
	}
	for _, slot := range slices.Sorted(maps.Keys(t.Sessions)) {
		if t.Sessions[slot].ID == proto.SessionID(id) {
			return fmt.Sprintf("s%d", slot)
		}
	}
	return fmt.Sprintf("%#x", uint64(id))
}

// secret names a password by its session, or else by its bytes. The password alone does not tell
// the session: ZooKeeper computes a password from 48 bits of the session id, so sessions of two
// members that started in the same millisecond may have equal passwords.
func (t *Transcript) secret(f *Field) string {
	for _, slot := range slices.Sorted(maps.Keys(t.Sessions)) {
		if t.Sessions[slot].has(f) {
			return fmt.Sprintf("of s%d, %d bytes", slot, len(f.S))
		}
	}
	return fmt.Sprintf("%x", f.S)
}

// has reports whether a Secret is the password of s.
func (s Session) has(f *Field) bool {
	return s.ID == proto.SessionID(f.N) && string(s.Passwd) == f.S
}

// headerZxid is the index of the zxid among the fields of a reply or event.
const headerZxid = 1

// showsChange reports whether the header's zxid is that of a change: in events and in replies to
// successful writes.
func (m *Message) showsChange() bool {
	if m.Kind != MessageReply || m.Err() != proto.OK {
		return m.Kind == MessageEvent
	}
	if m.Op == proto.OpMulti { // err is 0 even if nothing was done
		f := fieldNamed(m, "result0.type")
		return f != nil && f.N != int64(proto.OpError)
	}
	return m.Op.Info().Class == proto.ClassWrite
}

// zxids returns the first place where the zxids of the servers are in a different order.
func (c *comparison) zxids() *Mismatch {
	m := misordered(c.pairs)
	if m == nil {
		return nil
	}
	for i := range c.differences {
		if d := &c.differences[i]; d.Gaps {
			if m = misordered(withoutGaps(c.pairs)); m == nil {
				c.allowed[d.ID]++
				return nil
			}
		}
	}
	if c.allows(m) {
		return nil
	}
	return m
}

func misordered(pairs []zxidPair) *Mismatch {
	sorted := slices.Clone(pairs)
	slices.SortStableFunc(sorted, func(x, y zxidPair) int { return cmp.Or(cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b)) })
	for i := 1; i < len(sorted); i++ {
		x, y := &sorted[i-1], &sorted[i]
		if cmp.Compare(x.a, y.a) == cmp.Compare(x.b, y.b) {
			continue
		}
		m, o := y.m, x.m
		if x.m.Step > y.m.Step {
			m, o = x.m, y.m
		}
		m.Detail = fmt.Sprintf(": %#x and %#x, but at step %d %s %#x and %#x", y.a, y.b, o.Step, o.Field, x.a, x.b)
		m.Field = "order of " + m.Field
		return &m
	}
	return nil
}

// withoutGaps replaces each zxid that only shows progress by the last visible change up to it.
func withoutGaps(pairs []zxidPair) []zxidPair {
	var a, b []int64
	for _, p := range pairs {
		if p.change {
			a, b = append(a, p.a), append(b, p.b)
		}
	}
	slices.Sort(a)
	slices.Sort(b)
	last := func(changes []int64, zxid int64) int64 {
		i, found := slices.BinarySearch(changes, zxid)
		switch {
		case found || zxid <= 0:
			return zxid
		case i == 0:
			return 0 // before the first visible change
		}
		return changes[i-1]
	}
	out := slices.Clone(pairs)
	for i := range out {
		if !out[i].change {
			out[i].a, out[i].b = last(a, out[i].a), last(b, out[i].b)
		}
	}
	return out
}
