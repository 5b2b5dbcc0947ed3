package inspect

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/replica"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/internal/printable"
	"github.com/gozkd/gozkd/proto"
)

// printer writes records, as text or as JSON lines. The first error stays.
type printer struct {
	w    io.Writer
	json bool
	data bool // with the data of znodes
	err  error
}

func (p *printer) line(text string) {
	if p.err == nil {
		_, p.err = io.WriteString(p.w, text+"\n")
	}
}

func (p *printer) object(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("inspect: %v", err)) // the types below have no values that JSON lacks
	}
	p.line(printable.JSON(b))
}

// txnJSON is the line of a transaction. docs/reference/shell.md describes it.
type txnJSON struct {
	Zxid        string          `json:"zxid,omitempty"`
	Time        string          `json:"time,omitempty"`
	Index       uint64          `json:"index,omitempty"`
	Term        uint64          `json:"term,omitempty"`
	Session     string          `json:"session,omitempty"`
	Cxid        *int32          `json:"cxid,omitempty"`
	Server      *uint8          `json:"server,omitempty"`
	Op          string          `json:"op"`
	Path        string          `json:"path,omitempty"`
	Sequential  bool            `json:"sequential,omitempty"`
	Mode        string          `json:"mode,omitempty"`
	Version     *int32          `json:"version,omitempty"`
	Bytes       *int            `json:"bytes,omitempty"`
	Data        []byte          `json:"data,omitempty"`
	ACL         []proto.ACLJSON `json:"acl,omitempty"`
	IDs         []string        `json:"ids,omitempty"`
	TimeoutMs   int32           `json:"timeoutMs,omitempty"`
	Ops         []txnJSON       `json:"ops,omitempty"`
	Deleted     []string        `json:"deleted,omitempty"`
	Err         *proto.ErrCode  `json:"err,omitempty"`
	Uncommitted bool            `json:"uncommitted,omitempty"`
}

func (p *printer) txnJSON(t *replica.Txn) txnJSON {
	j := txnJSON{
		Index: t.Index, Term: t.Term, Server: serverNumber(t.Server), Op: t.Op, Path: t.Path, Sequential: t.Sequential, Mode: t.Mode, Version: t.Version,
		TimeoutMs: t.TimeoutMs, Deleted: t.Deleted, Uncommitted: t.Uncommitted, ACL: shownACL(t.ACL),
		Zxid: shown(t.Zxid), Session: shown(t.Session), IDs: shownIDs(t.IDs),
	}
	if !t.Time.IsZero() {
		j.Time = timeText(t.Time)
	}
	if t.HasCxid {
		j.Cxid = &t.Cxid
	}
	if t.HasData {
		j.Bytes = new(len(t.Data))
		if p.data {
			j.Data = t.Data
		}
	}
	for i := range t.Ops {
		j.Ops = append(j.Ops, p.txnJSON(&t.Ops[i]))
	}
	if t.Known {
		j.Err = &t.Err
	}
	return j
}

func timeText(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// shown returns the text of a zxid or a session, "" for none.
func shown[N proto.Zxid | proto.SessionID](n N) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func shownIDs(ids []proto.ID) (list []string) {
	for _, id := range ids {
		list = append(list, id.Shown())
	}
	return list
}

// shownACL returns a list in JSON, without the hashes of passwords.
func shownACL(acl []proto.ACL) []proto.ACLJSON {
	list := proto.ACLToJSON(acl)
	for i := range list {
		list[i].ID = acl[i].ID.User()
	}
	return list
}

func (p *printer) txn(t *replica.Txn) {
	if p.json {
		p.object(p.txnJSON(t))
		return
	}
	zxid, session := cmp.Or(shown(t.Zxid), "-"), cmp.Or(shown(t.Session), "-")
	p.line(fmt.Sprintf("%-13s %s %-18s %-6s %s", zxid, timeText(t.Time), session, outcome(t), p.operation(t)))
	for i := range t.Ops {
		p.line(fmt.Sprintf("%58s %-6s   %s", "", outcome(&t.Ops[i]), p.operation(&t.Ops[i])))
	}
	for _, path := range t.Deleted {
		p.line(fmt.Sprintf("%65s   deletes %s", "", printable.Text(path)))
	}
}

func outcome(t *replica.Txn) string {
	switch {
	case !t.Known:
		return "?"
	case t.Err != proto.OK:
		return "FAILED"
	}
	return "ok"
}

// operation describes a transaction or an operation of a multi.
func (p *printer) operation(t *replica.Txn) string {
	words := []string{t.Op}
	if t.Path != "" {
		path := printable.Text(t.Path)
		if t.Sequential {
			path += "##########"
		}
		words = append(words, path)
	}
	switch {
	case !t.Known && !t.Sequential && t.Version != nil && *t.Version != -1:
		words = append(words, fmt.Sprintf("if version %d", *t.Version))
	case t.Known && t.Err == proto.OK && t.Version != nil && (t.Op == "setData" || t.Op == "setACL"):
		words = append(words, fmt.Sprintf("version %d", *t.Version))
	}
	if t.Mode != "" && t.Mode != "persistent" {
		words = append(words, t.Mode)
	}
	if t.HasData {
		words = append(words, fmt.Sprintf("%d bytes", len(t.Data)))
		if p.data {
			words = append(words, strconv.Quote(string(t.Data)))
		}
	}
	if len(t.ACL) > 0 && t.Op == "setACL" {
		entries := make([]string, len(t.ACL))
		for i, a := range t.ACL {
			entries[i] = a.ID.Shown() + ":" + a.Perms.Letters()
		}
		words = append(words, "to "+printable.Text(strings.Join(entries, ",")))
	}
	if len(t.IDs) > 0 {
		words = append(words, "by "+printable.Text(strings.Join(shownIDs(t.IDs), ",")))
	}
	if t.Failed() {
		words = append(words, "("+t.Err.String()+")")
	}
	if t.Uncommitted {
		words = append(words, "(not known to be committed)")
	}
	return strings.Join(words, " ")
}

// znodeJSON is the line of a znode.
type znodeJSON struct {
	Path  string `json:"path"`
	Mode  string `json:"mode"`
	TTLMs int64  `json:"ttlMs,omitempty"`
	proto.StatJSON
	Data []byte          `json:"data,omitempty"`
	ACL  []proto.ACLJSON `json:"acl"`
}

func (p *printer) znode(z *proto.Znode) {
	s := &z.Stat
	ctime, mtime := timeText(time.UnixMilli(s.CtimeMs)), timeText(time.UnixMilli(s.MtimeMs))
	if !p.json {
		words := fmt.Sprintf("%s %s %d bytes, version %d, created %v %s, changed %v %s", printable.Text(z.Path), replica.ModeName(z.Mode), len(z.Data),
			s.Version, s.Czxid, ctime, s.Mzxid, mtime)
		if s.EphemeralOwner != 0 && z.Mode == proto.ModeEphemeral {
			words += ", session " + s.EphemeralOwner.String()
		}
		if p.data {
			words += " " + strconv.Quote(string(z.Data))
		}
		p.line(words)
		return
	}
	j := znodeJSON{Path: z.Path, Mode: replica.ModeName(z.Mode), TTLMs: z.TTLMs, StatJSON: s.JSON(), ACL: shownACL(z.ACL)}
	if p.data {
		j.Data = z.Data
	}
	p.object(j)
}

// sessionJSON is the line of a session. Its password is not printed.
type sessionJSON struct {
	Session    string `json:"session"`
	TimeoutMs  int32  `json:"timeoutMs"`
	Server     *uint8 `json:"server,omitempty"`
	Ephemerals int    `json:"ephemerals"`
}

// serverNumber returns the number of a server for JSON, nil if id is none.
func serverNumber(id uint8) *uint8 {
	if id == 0 {
		return nil
	}
	return new(memberid.Number(id))
}

func (p *printer) session(s datatree.SessionInfo) {
	if p.json {
		p.object(sessionJSON{s.ID.String(), s.TimeoutMs, serverNumber(s.Server), s.NumEphemerals})
		return
	}
	p.line(fmt.Sprintf("%-18v timeout %d ms, of server %d, %d ephemerals",
		s.ID, s.TimeoutMs, memberid.Number(s.Server), s.NumEphemerals))
}
