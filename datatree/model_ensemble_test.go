package datatree_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/proto"
	"pgregory.net/rapid"
)

// modelMembers maps ids to roles. The id determines the rest of a server line, so that no two
// members share an address; the syntax of lines is tested in package serverlist.
type modelMembers map[int]string

// modelEnsemble is the model's state of the members. The maps are immutable.
type modelEnsemble struct {
	version, serial  proto.Zxid
	current, pending modelMembers
}

func memberLine(id int, role string) string {
	return fmt.Sprintf("server.%d=10.0.0.%d:2888:3888:%s;10.0.0.%d:2181", id, id, role, id)
}

func (m modelMembers) lines() []string {
	var lines []string
	for _, id := range slices.Sorted(maps.Keys(m)) {
		lines = append(lines, memberLine(id, m[id]))
	}
	return lines
}

func (m modelMembers) text(version proto.Zxid) string {
	return strings.Join(append(m.lines(), fmt.Sprintf("version=%x", int64(version))), "\n")
}

func (m modelMembers) voters() int {
	n := 0
	for _, role := range m {
		if role == "participant" {
			n++
		}
	}
	return n
}

// change is a change that a client may request, as text and in its effect.
type change struct {
	joining, leaving, full *string
	ours                   bool // only gozkd refuses it, after the permission is checked
	effect                 func(modelMembers) (modelMembers, proto.ErrCode)
}

var roles = rapid.SampledFrom([]string{"participant", "participant", "participant", "observer"})

func someMembers(t *rapid.T, least int) modelMembers {
	return rapid.MapOfN(rapid.IntRange(1, 6), roles, least, 5).Draw(t, "members")
}

func drawChange(t *rapid.T) change {
	all := someMembers(t, 0)
	switch rapid.IntRange(0, 9).Draw(t, "change") {
	case 0:
		return change{effect: func(now modelMembers) (modelMembers, proto.ErrCode) { return now, proto.OK }}
	case 1:
		bad := rapid.SampledFrom([]string{"nonsense", "server.3", "server.3=h:1", "server.-1=h:1:2;3", "server.255=h:1:2;3"}).Draw(t, "bad")
		outOfRange := bad == "server.-1=h:1:2;3" || bad == "server.255=h:1:2;3"
		return change{joining: &bad, ours: outOfRange, effect: func(modelMembers) (modelMembers, proto.ErrCode) { return nil, proto.ErrBadArguments }}
	case 2:
		bad := rapid.SampledFrom([]string{"x", "1,x", "server.1"}).Draw(t, "bad")
		return change{leaving: &bad, effect: func(modelMembers) (modelMembers, proto.ErrCode) { return nil, proto.ErrMarshallingError }}
	case 3, 4:
		text := strings.Join(all.lines(), rapid.SampledFrom([]string{",", "\n"}).Draw(t, "separator"))
		return change{full: &text, effect: func(modelMembers) (modelMembers, proto.ErrCode) {
			if all.voters() < 2 && all.voters() < len(all) {
				return nil, proto.ErrMarshallingError
			}
			return all, proto.OK
		}}
	}
	var c change
	var gone []string
	for _, id := range rapid.SliceOfN(rapid.IntRange(1, 7), 0, 2).Draw(t, "leaving") {
		gone = append(gone, fmt.Sprint(id))
	}
	if leaving := strings.Join(gone, ","); leaving != "" || rapid.Bool().Draw(t, "empty") {
		c.leaving = &leaving
	}
	if joining := strings.Join(all.lines(), ","); joining != "" || rapid.Bool().Draw(t, "empty") {
		c.joining = &joining
	}
	c.effect = func(now modelMembers) (modelMembers, proto.ErrCode) {
		next := maps.Clone(now)
		maps.DeleteFunc(next, func(id int, _ string) bool { return slices.Contains(gone, fmt.Sprint(id)) })
		maps.Copy(next, all)
		return next, proto.OK
	}
	return c
}

// reconfig does one step of a change of the ensemble: a client's request, the leader's answer to
// it, or the initial members.
func (s *machine) reconfig(t *rapid.T) {
	e := &s.model.ensemble
	switch step := rapid.IntRange(0, 9).Draw(t, "step"); {
	case step < 2, step < 5 && e.version == 0 && e.serial == 0:
		first := someMembers(t, 0)
		body := first.text(0)
		h := s.header(t)
		want := outcome{err: proto.ErrBadArguments}
		switch {
		case e.serial != 0:
			want.err = proto.ErrReconfigInProgress
		case e.version != 0:
			want.err = proto.ErrNodeExists
		case first.voters() > 0:
			want = outcome{pending: true, serial: h.Zxid}
			e.serial, e.pending = h.Zxid, first
		}
		s.apply(t, h, &datatree.Request{Op: proto.OpInitConfig, Body: []byte(body)}, want)
	case step < 6:
		s.clientReconfig(t)
	default:
		s.configDone(t)
	}
}

func (s *machine) clientReconfig(t *rapid.T) {
	e := &s.model.ensemble
	c := drawChange(t)
	r := &proto.ReconfigRequest{Joining: c.joining, Leaving: c.leaving, NewMembers: c.full, ConfigID: -1}
	switch rapid.IntRange(0, 4).Draw(t, "version") {
	case 0, 1:
		r.ConfigID = int64(e.version)
	case 2:
		r.ConfigID = int64(e.version) + rapid.SampledFrom([]int64{-1, 1}).Draw(t, "off")
	}
	from := s.conn(t)
	from.super = rapid.Bool().Draw(t, "super")
	body := r.Append(nil)
	if rapid.IntRange(0, 15).Draw(t, "short") == 0 {
		body = body[:len(body)-1]
	}
	short := len(body) < len(r.Append(nil))
	s.request(t, from, proto.OpReconfig, body, func(env env) outcome {
		switch {
		case short:
			return outcome{err: proto.ErrMarshallingError}
		case e.version == 0 && e.serial == 0:
			return outcome{err: proto.ErrUnimplemented}
		case e.serial != 0:
			return outcome{err: proto.ErrReconfigInProgress}
		case r.ConfigID != -1 && r.ConfigID != int64(e.version):
			return outcome{err: proto.ErrBadVersion}
		}
		next, code := c.effect(e.current)
		if code == proto.OK && next.voters() < 2 {
			code = proto.ErrBadArguments
		}
		const header, lengthAndStat = 16, 4 + 68
		text := next.text(env.h.Zxid)
		switch {
		case code != proto.OK && !c.ours:
		case !s.model.allowed(env, s.model.nodes["/zookeeper/config"], proto.PermWrite):
			code = proto.ErrNoAuth
		case code != proto.OK:
		case env.req.MaxBuffer > 0 && header+lengthAndStat+len(text) > int(env.req.MaxBuffer):
			code = proto.ErrMarshallingError
		}
		if code != proto.OK {
			return outcome{err: code}
		}
		e.serial, e.pending = env.h.Zxid, next
		return outcome{pending: true, serial: env.h.Zxid}
	})
}

// configDone mostly refers to the pending change and mostly reports success.
func (s *machine) configDone(t *rapid.T) {
	e := &s.model.ensemble
	done := datatree.ConfigDoneBody{Serial: e.serial, Code: rapid.SampledFrom([]proto.ErrCode{0, 0, 0, proto.ErrNewConfigNoQuorum}).Draw(t, "code")}
	if rapid.IntRange(0, 4).Draw(t, "stale") == 0 {
		done.Serial--
	}
	h := s.header(t)
	want := outcome{err: proto.ErrBadVersion}
	if e.serial != 0 && done.Serial == e.serial {
		want = outcome{err: done.Code, serial: e.serial}
		if done.Code == proto.OK {
			e.version, e.current = h.Zxid, e.pending
			want.data = []byte(e.current.text(h.Zxid))
			n := s.model.nodes["/zookeeper/config"]
			n.data, n.mzxid, n.mtime, n.version, n.birth = want.data, h.Zxid, h.TimeMs, -1, false
			want.stat = s.model.stat("/zookeeper/config")
			want.events = []modelEvent{{typ: proto.EventDataChanged, path: "/zookeeper/config", acl: n.acl}}
		}
		e.serial, e.pending = 0, nil
	}
	s.apply(t, h, &datatree.Request{Op: proto.OpConfigDone, Body: done.Append(nil)}, want)
	s.compareEnsemble(t)
}

func (s *machine) compareEnsemble(t *rapid.T) {
	e := &s.model.ensemble
	set, version := s.tree.Config()
	if version != e.version || version != 0 && set.Text(version) != e.current.text(version) {
		t.Fatalf("Config: got %v of %v, want %v of %v", set, version, e.current, e.version)
	}
	p, ok := s.tree.PendingConfig()
	if ok != (e.serial != 0) || p.Serial != e.serial || ok && p.Members.Text(0) != e.pending.text(0) {
		t.Fatalf("PendingConfig: got %v %t, want %v of %v", p, ok, e.pending, e.serial)
	}
}
