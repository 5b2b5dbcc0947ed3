package datatree

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// TestScripts runs the transcripts in testdata/script. Each line of a "run" is one request, read or
// setting; words with odd characters are quoted as in Go:
//
//	open NAME [server=N]                                 createSession; NAME speaks from then on, with no identities
//	NAME ids SCHEME=ID...                                its identities
//	NAME reattach [passwd=TEXT] | close | expire [epoch=N]   and their session requests
//	NAME create|create2|container|ttl PATH [data=TEXT] [mode=N] [ttl=MS] [acl=PERMS,SCHEME,ID[+...]]
//	NAME delete|check PATH [v=N]                         check only in a multi
//	NAME set PATH [data=TEXT] [v=N]                      without data=: null
//	NAME setacl PATH acl=... [v=N]
//	NAME multi OP ; OP ...
//	NAME raw op=N [hex=BYTES]
//	NAME exists|get|ls|getacl|count PATH, NAME eph [PREFIX], NAME sees (which of the last events)
//	NAME reconfig [join=LIST] [leave=LIST] [members=LIST] [config=N]
//	server init members=LIST | done [serial=N] [code=N]          the other steps of a reconfig; serial: of the one that is pending
//	members                                              current and pending
//	server collect [neverused=MS] | deletecontainer PATH [czxid=N] | raw op=N [hex=BYTES]
//	set time=MS zxid=0xN quota=B skipacl=B maxbuffer=N   settings of the requests to come
//	counter PATH N                                       moves a sequence counter by hand
//	restart                                              goes on with a tree restored from the captures so far
//
// After each directive the tree is checked, and a tree restored from the captures must equal it.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/script", func(t *testing.T, path string) {
		s := newScript()
		datadriven.RunTest(t, path, func(t *testing.T, td *datadriven.TestData) string {
			if td.Cmd != "run" {
				td.Fatalf(t, "unknown directive %s", td.Cmd)
			}
			var out strings.Builder
			for line := range strings.Lines(td.Input) {
				s.line(t, &out, strings.TrimSpace(line))
			}
			s.store.verify(t, s.tree)
			return out.String()
		})
	})
}

type script struct {
	tree    *Tree
	store   store
	clients map[string]*client
	events  []Event
	zxid    proto.Zxid
	timeMs  int64
	req     Request // flags and limit of all requests
}

type client struct {
	session, epoch int64
	server         uint8
	ids            []proto.ID
}

func newScript() *script {
	return &script{tree: New(Options{TrackDirty: true}), store: make(store), clients: make(map[string]*client), timeMs: 1000}
}

func (s *script) line(t *testing.T, out *strings.Builder, line string) {
	t.Helper()
	if line == "" || strings.HasPrefix(line, "#") {
		return
	}
	w := words(t, line)
	switch w.pos[0] {
	case "open":
		c := &client{server: uint8(w.num("server", 1))}
		s.clients[w.pos[1]] = c
		body := CreateSessionBody{TimeoutMs: int32(w.num("timeout", 4000))}
		copy(body.Passwd[:], "secret of "+w.pos[1])
		res := s.apply(out, line, &Request{Op: proto.OpCreateSession, Server: c.server, Body: body.Append(nil)})
		c.session, c.epoch = int64(res.SessionID), int64(res.Zxid)
	case "set":
		s.timeMs = w.num("time", s.timeMs)
		s.req.MaxBuffer = int32(w.num("maxbuffer", int64(s.req.MaxBuffer)))
		if z := w.num("zxid", 0); z != 0 {
			s.zxid = proto.Zxid(z)
			s.tree.SetLastZxid(s.zxid)
		}
		for name, flag := range map[string]RequestFlags{"quota": FlagEnforceQuota, "skipacl": FlagSkipACL} {
			switch w.opt[name] {
			case "true":
				s.req.Flags |= flag
			case "false":
				s.req.Flags &^= flag
			}
		}
	case "members":
		now, version := s.tree.Config()
		fmt.Fprintf(out, "%s: version %x %v\n", line, int64(version), now)
		if p, ok := s.tree.PendingConfig(); ok {
			fmt.Fprintf(out, "  pending %x %v\n", int64(p.Serial), p.Members)
		}
	case "counter":
		n := s.tree.get(w.pos[1])
		rec := n.record()
		rec.cversion = int32(w.atoi(w.pos[2]))
		s.tree.replace(n, &rec)
	case "restart":
		s.store.merge(t, s.tree.Capture())
		s.tree = s.store.restore(t)
	case "server":
		s.server(t, out, line, w)
	default:
		c := s.clients[w.pos[0]]
		if c == nil {
			t.Fatalf("%s: nobody is called %s", line, w.pos[0])
		}
		s.client(t, out, line, c, w.shift())
	}
}

// server executes what a server does by itself.
func (s *script) server(t *testing.T, out *strings.Builder, line string, w *wordList) {
	t.Helper()
	switch w.pos[1] {
	case "collect":
		var paths []string
		for _, c := range s.tree.Collectable(s.timeMs, w.num("neverused", 0), 100) {
			paths = append(paths, c.Path)
		}
		slices.Sort(paths)
		fmt.Fprintf(out, "%s: %v\n", line, paths)
	case "deletecontainer":
		var stat proto.Stat
		if n := s.tree.get(w.pos[2]); n != nil {
			stat, _ = s.tree.Exists(w.pos[2], Caller{SkipACL: true})
		}
		s.apply(out, line, &Request{Op: proto.OpDeleteContainer, Body: DeleteContainerBody{w.pos[2], proto.Zxid(w.num("czxid", int64(stat.Czxid)))}.Append(nil)})
	case "init":
		s.apply(out, line, &Request{Op: proto.OpInitConfig, Body: []byte(w.opt["members"])})
	case "done":
		p, _ := s.tree.PendingConfig()
		body := ConfigDoneBody{proto.Zxid(w.num("serial", int64(p.Serial))), proto.ErrCode(w.num("code", 0))}
		s.apply(out, line, &Request{Op: proto.OpConfigDone, Body: body.Append(nil)})
	case "raw":
		body, err := hex.DecodeString(w.opt["hex"])
		if err != nil {
			t.Fatal(err)
		}
		s.apply(out, line, &Request{Op: proto.OpCode(w.num("op", 0)), Body: body})
	default:
		t.Fatalf("%s: unknown", line)
	}
}

func (s *script) client(t *testing.T, out *strings.Builder, line string, c *client, w *wordList) {
	t.Helper()
	r := &Request{Session: proto.SessionID(c.session), ConnEpoch: proto.Zxid(c.epoch), IDs: c.ids, Server: c.server}
	caller := Caller{IDs: c.ids, SkipACL: s.req.Flags&FlagSkipACL != 0}
	arg := ""
	if len(w.pos) > 1 {
		arg = w.pos[1]
	}
	switch w.pos[0] {
	case "ids":
		c.ids = nil
		for _, p := range w.pos[1:] {
			scheme, id, _ := strings.Cut(p, "=")
			c.ids = append(c.ids, proto.ID{Scheme: scheme, ID: id})
		}
	case "reattach":
		body := CreateSessionBody{TimeoutMs: int32(w.num("timeout", 4000))}
		copy(body.Passwd[:], w.str("passwd", "secret of "+strings.Fields(line)[0]))
		r.Op, r.Body, r.Server = proto.OpReattachSession, body.Append(nil), uint8(w.num("server", int64(c.server)))
		if res := s.apply(out, line, r); res.Err == proto.OK && w.opt["quietly"] == "" {
			c.epoch = int64(res.Zxid)
		}
	case "close":
		r.Op = proto.OpCloseSession
		s.apply(out, line, r)
	case "reconfig":
		r.Op = proto.OpReconfig
		r.Body = (&proto.ReconfigRequest{Joining: w.null("join"), Leaving: w.null("leave"), NewMembers: w.null("members"), ConfigID: w.num("config", -1)}).Append(nil)
		s.apply(out, line, r)
	case "expire":
		r.Op, r.Body = proto.OpExpireSession, ExpireSessionBody{uint32(w.num("epoch", int64(s.zxid.Next().Epoch())))}.Append(nil)
		s.apply(out, line, r)
	case "raw":
		r.Op = proto.OpCode(w.num("op", 0))
		r.Body, _ = hex.DecodeString(w.opt["hex"])
		s.apply(out, line, r)
	case "setacl":
		r.Op = proto.OpSetACL
		r.Body = (&proto.SetACLRequest{Path: arg, ACL: w.acl(), Version: int32(w.num("v", -1))}).Append(nil)
		s.apply(out, line, r)
	case "multi":
		var m proto.MultiRequest
		for _, part := range strings.Split(strings.TrimSpace(strings.SplitN(line, "multi", 2)[1]), " ; ") {
			if part != "" {
				m.Ops = append(m.Ops, words(t, part).op())
			}
		}
		r.Op, r.Body = proto.OpMulti, m.Append(nil)
		s.apply(out, line, r)
	case "exists":
		st, code := s.tree.Exists(arg, caller)
		show(out, line, code, "%s", statText(st))
	case "get":
		data, st, code := s.tree.GetData(arg, caller)
		text := strconv.Quote(string(data))
		if data == nil {
			text = "null"
		}
		show(out, line, code, "%s %s", text, statText(st))
	case "ls":
		b, st, code := s.tree.AppendChildren(nil, arg, caller)
		d := jute.NewDecoder(b)
		names := d.Strings()
		slices.Sort(names)
		show(out, line, code, "%v %s", names, statText(st))
	case "getacl":
		list, _, code := s.tree.GetACL(arg, caller)
		show(out, line, code, "%s", aclText(list))
	case "count":
		n, code := s.tree.AllChildrenNumber(arg, caller)
		show(out, line, code, "%d of %d", n, s.tree.NumZnodes())
	case "eph":
		var prefix *string
		if len(w.pos) > 1 {
			prefix = &arg
		}
		show(out, line, proto.OK, "%q", s.tree.Ephemerals(r.Session, prefix))
	case "sees":
		var seen []string
		for _, e := range s.events {
			if s.tree.Readable(e.ACL, caller) {
				seen = append(seen, e.Type.String()+" "+e.Path)
			}
		}
		show(out, line, proto.OK, "%v", seen)
	default:
		m := w.op()
		r.Op = m.Op
		all := (&proto.MultiRequest{Ops: []proto.MultiOp{m}}).Append(nil)
		const header = 9
		r.Body = all[header : len(all)-header]
		s.apply(out, line, r)
	}
}

// apply encodes r, decodes it and applies it.
func (s *script) apply(out *strings.Builder, line string, r *Request) Result {
	r.Flags, r.MaxBuffer = s.req.Flags, s.req.MaxBuffer
	decoded, err := decodeRequest(r.Append(nil), Identities{})
	if err != nil {
		panic(err)
	}
	s.zxid = s.zxid.Next()
	res, events := s.tree.Apply(Header{s.zxid, s.timeMs}, &decoded)
	s.events = slices.Clone(events)
	fmt.Fprintf(out, "%s: %s", line, res.Err.String())
	if res.SessionID != 0 {
		fmt.Fprintf(out, " session=%v", res.SessionID)
	}
	if res.Path != "" {
		fmt.Fprintf(out, " %q", res.Path)
	}
	if res.Stat != (proto.Stat{}) {
		fmt.Fprintf(out, " %s", statText(res.Stat))
	}
	if res.Why != "" {
		fmt.Fprintf(out, " [%s]", res.Why)
	}
	if res.Pending {
		fmt.Fprintf(out, " pending")
	}
	if res.Serial != 0 {
		fmt.Fprintf(out, " serial=%x", int64(res.Serial))
	}
	if res.Data != nil {
		fmt.Fprintf(out, " %q", res.Data)
	}
	if res.MultiFailed {
		fmt.Fprintf(out, " failed")
	}
	fmt.Fprintln(out)
	for _, m := range res.Multi {
		fmt.Fprintf(out, "  %v", m.Op)
		if m.Op == proto.OpError {
			fmt.Fprintf(out, " %s", m.Err.String())
		}
		if m.Path != "" {
			fmt.Fprintf(out, " %q", m.Path)
		}
		if m.Stat != (proto.Stat{}) {
			fmt.Fprintf(out, " %s", statText(m.Stat))
		}
		fmt.Fprintln(out)
	}
	for _, e := range events {
		fmt.Fprintf(out, "  %v %s\n", e.Type, e.Path)
		if e.Zxid != s.zxid {
			fmt.Fprintf(out, "    but its zxid is %v\n", e.Zxid)
		}
	}
	return res
}

func show(out *strings.Builder, line string, code proto.ErrCode, format string, args ...any) {
	if code != proto.OK {
		fmt.Fprintf(out, "%s: %s\n", line, code.String())
		return
	}
	fmt.Fprintf(out, "%s: %s\n", line, fmt.Sprintf(format, args...))
}

func statText(s proto.Stat) string {
	text := fmt.Sprintf("c%x m%x p%x ctime=%d mtime=%d v%d cv%d av%d len=%d n=%d",
		int64(s.Czxid), int64(s.Mzxid), int64(s.Pzxid), s.CtimeMs, s.MtimeMs, s.Version, s.Cversion, s.Aversion, s.DataLength, s.NumChildren)
	if s.EphemeralOwner != 0 {
		text += " owner=" + s.EphemeralOwner.String()
	}
	return text
}

func aclText(list []proto.ACL) string {
	var entries []string
	for _, a := range list {
		entries = append(entries, fmt.Sprintf("%d,%s,%s", a.Perms, a.ID.Scheme, a.ID.ID))
	}
	return strings.Join(entries, "+")
}
