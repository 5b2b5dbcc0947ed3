package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/user"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/gozkd/gozkd/proto"
)

// Format appends the line of an event, with its line end, or nothing if the format has no such
// event.
type Format func(b []byte, e *Event) []byte

// maxValue bounds each text from a client in a line, in bytes: a path may be as long as a request.
const maxValue = 32 << 10

// bounded returns at most maxValue bytes of a text.
func bounded(text string) string {
	if len(text) <= maxValue {
		return text
	}
	cut := maxValue
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}

// jsonLine is the JSON format; docs/reference/monitoring.md describes the fields.
type jsonLine struct {
	Time      string   `json:"time"`
	Operation string   `json:"operation"`
	Result    string   `json:"result"`
	Error     string   `json:"error,omitempty"`
	Code      int32    `json:"code,omitempty"`
	By        string   `json:"by,omitempty"`
	IDs       []jsonID `json:"ids,omitempty"`
	Client    string   `json:"client,omitempty"`
	TLS       *bool    `json:"tls,omitempty"`
	Session   string   `json:"session,omitempty"`
	Xid       int32    `json:"xid,omitempty"`
	Zxid      string   `json:"zxid,omitempty"`
	Znode     *string  `json:"znode,omitempty"`
	ZnodeType string   `json:"znode_type,omitempty"`
	Multi     bool     `json:"multi,omitempty"`
	ACL       []string `json:"acl,omitempty"`
	Detail    string   `json:"detail,omitempty"`
	Dropped   int64    `json:"dropped,omitempty"`
}

type jsonID struct {
	Scheme string `json:"scheme"`
	ID     string `json:"id"`
}

// JSON is one JSON object per line. It has all events, and no hash of a password.
func JSON(b []byte, e *Event) []byte {
	l := jsonLine{
		Time: e.Time.UTC().Format("2006-01-02T15:04:05.000000Z"), Operation: string(e.Operation), Result: string(e.Result),
		Client: e.Client, Xid: e.Xid, ZnodeType: znodeType(e), Multi: e.InMulti, Detail: bounded(e.Detail), Dropped: e.Count,
	}
	if e.Err != proto.OK {
		l.Error, l.Code = e.Err.String(), int32(e.Err)
	}
	if e.IDs == nil {
		l.By = "server"
	}
	for _, id := range e.IDs {
		l.IDs = append(l.IDs, jsonID{id.Scheme, bounded(name(id))})
	}
	if e.Client != "" {
		l.TLS = &e.TLS
	}
	if e.Session != 0 {
		l.Session = sessionText(e.Session)
	}
	if e.Zxid != 0 {
		l.Zxid = "0x" + strconv.FormatUint(uint64(e.Zxid), 16)
	}
	if e.HasZnode {
		path := bounded(e.Znode)
		l.Znode = &path
	}
	for _, a := range e.ACL {
		l.ACL = append(l.ACL, a.ID.Scheme+":"+bounded(name(a.ID))+":"+permissions(a.Perms))
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(&l); err != nil {
		panic(fmt.Sprintf("audit: %v", err)) // it has only texts and numbers
	}
	return append(b, out.Bytes()...)
}

// name returns an identity without the hash of a password.
func name(id proto.ID) string {
	if id.Scheme == "digest" {
		user, _, _ := strings.Cut(id.ID, ":")
		return user
	}
	return id.ID
}

func sessionText(id proto.SessionID) string { return "0x" + strconv.FormatUint(uint64(id), 16) }

// permissions returns ZooKeeper's letters, in its order.
func permissions(p proto.Perms) string {
	var b []byte
	for _, bit := range []struct {
		perm   proto.Perms
		letter byte
	}{{proto.PermCreate, 'c'}, {proto.PermDelete, 'd'}, {proto.PermRead, 'r'}, {proto.PermWrite, 'w'}, {proto.PermAdmin, 'a'}} {
		if p&bit.perm != 0 {
			b = append(b, bit.letter)
		}
	}
	return string(b)
}

// znodeTypes are the names of ZooKeeper's CreateMode, in lower case.
var znodeTypes = [...]string{
	proto.ModePersistent:              "persistent",
	proto.ModeEphemeral:               "ephemeral",
	proto.ModePersistentSequential:    "persistent_sequential",
	proto.ModeEphemeralSequential:     "ephemeral_sequential",
	proto.ModeContainer:               "container",
	proto.ModePersistentTTL:           "persistent_with_ttl",
	proto.ModePersistentSequentialTTL: "persistent_sequential_with_ttl",
}

func znodeType(e *Event) string {
	if !e.HasMode || !e.Mode.Valid() {
		return ""
	}
	return znodeTypes[e.Mode]
}

// operator returns the name of the user that runs the server, or its number.
var operator = sync.OnceValue(func() string {
	u, err := user.Current()
	if err != nil {
		return "unknown"
	}
	if u.Username != "" {
		return u.Username
	}
	return u.Uid
})

// ZooKeeper is the line that ZooKeeper writes with the appender RFAAUDIT of its logback.xml. It has
// only ZooKeeper's events. Unlike in ZooKeeper 3.9, tabs and line ends are removed from values, so
// that no client can forge a line or a field.
func ZooKeeper(b []byte, e *Event) []byte {
	if !e.Operation.inZooKeeper() && e.Operation != Dropped {
		return b
	}
	level := "INFO"
	if e.Result == Failure {
		level = "ERROR"
	}
	b = e.Time.In(time.Local).AppendFormat(b, "2006-01-02 15:04:05,000 ")
	b = append(b, level...)
	b = append(b, " o.a.z.a.Slf4jAuditLogger: "...)
	add := func(key, value string) {
		b = append(append(append(b, key...), '='), sanitized(value)...)
		b = append(b, '\t')
	}
	if e.Session != 0 {
		add("session", sessionText(e.Session))
	}
	if e.IDs == nil {
		add("user", operator())
	} else {
		add("user", users(e.IDs))
		add("ip", host(e.Client))
	}
	add("operation", string(e.Operation))
	if e.HasZnode {
		add("znode", e.Znode)
	}
	// In a multi, ZooKeeper finds the type by the path that was asked for, and never that of TTL
	// znodes.
	if t := znodeType(e); t != "" && !(e.InMulti && (e.Mode.Sequential() || e.Mode.TTL())) {
		add("znode_type", t)
	}
	if e.ACL != nil {
		add("acl", aclText(e.ACL))
	}
	if e.Operation == Dropped {
		add("dropped", strconv.FormatInt(e.Count, 10))
	}
	return append(append(append(b, "result="...), e.Result...), '\n')
}

// sanitized returns a value without the characters that separate lines and fields.
func sanitized(value string) string {
	value = bounded(value)
	if !strings.ContainsAny(value, "\t\n\r") && utf8.ValidString(value) {
		return value
	}
	return strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(strings.ToValidUTF8(value, "\ufffd"))
}

// host returns the address without the port.
func host(client string) string {
	if i := strings.LastIndexByte(client, ':'); i >= 0 {
		return strings.Trim(client[:i], "[]")
	}
	return client
}

// aclText joins the entries without anything in between, as ZooKeeper does.
func aclText(acl []proto.ACL) string {
	var b strings.Builder
	for _, a := range acl {
		b.WriteString(a.ID.Scheme + ":" + a.ID.ID + ":" + permissions(a.Perms))
	}
	return b.String()
}
