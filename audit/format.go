package audit

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os/user"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/gozkd/gozkd/internal/printable"
	"github.com/gozkd/gozkd/proto"
)

// Format appends the line of an event, with its end, or nothing if the format lacks the operation.
type Format func(b []byte, e *Event) []byte

// maxValue bounds each text of a client in a line, in bytes. Paths may be as long as requests.
const maxValue = 32 << 10

// JSON writes a JSON object per line; docs/reference/monitoring.md describes the fields. It
// contains all events, and no hash of a password.
func JSON(b []byte, e *Event) []byte {
	b = append(b, `{"time":"`...)
	b = e.Time.UTC().AppendFormat(b, "2006-01-02T15:04:05.000000Z")
	b = append(b, '"')
	add := func(key, value string) { b = appendText(append(append(append(b, `,"`...), key...), `":`...), value) }
	addAny := func(key, value string) {
		if value != "" {
			add(key, value)
		}
	}
	number := func(key string, n int64) {
		if n != 0 {
			b = strconv.AppendInt(append(append(append(b, `,"`...), key...), `":`...), n, 10)
		}
	}
	add("operation", string(e.Operation))
	add("result", string(e.Result))
	if e.Err != proto.OK {
		add("error", e.Err.String())
		number("code", int64(e.Err))
	}
	if e.IDs == nil {
		add("by", "server")
	}
	b = appendList(b, "ids", e.IDs, func(b []byte, id proto.ID) []byte {
		b = appendText(append(b, `{"scheme":`...), id.Scheme)
		return append(appendText(append(b, `,"id":`...), id.User()), '}')
	})
	if e.Client != "" {
		add("client", e.Client)
		b = strconv.AppendBool(append(b, `,"tls":`...), e.TLS)
	}
	addAny("origin", e.Origin)
	if e.Session != 0 {
		add("session", e.Session.String())
	}
	number("xid", int64(e.Xid))
	if e.Zxid != 0 {
		add("zxid", e.Zxid.String())
	}
	if e.HasZnode {
		add("znode", e.Znode)
	}
	addAny("znode_type", znodeType(e))
	if e.InMulti {
		b = append(b, `,"multi":true`...)
	}
	b = appendList(b, "acl", e.ACL, func(b []byte, a proto.ACL) []byte {
		return appendText(b, a.ID.Scheme+":"+printable.Shortened(shown(a.ID).User(), maxValue)+":"+a.Perms.Letters())
	})
	addAny("detail", e.Detail)
	number("dropped", e.Count)
	return append(b, "}\n"...)
}

func appendList[T any](b []byte, key string, list []T, element func([]byte, T) []byte) []byte {
	for i, v := range list {
		if i == 0 {
			b = append(append(append(b, `,"`...), key...), `":[`...)
		} else {
			b = append(b, ',')
		}
		b = element(b, v)
	}
	if len(list) > 0 {
		b = append(b, ']')
	}
	return b
}

func appendText(b []byte, text string) []byte {
	text = printable.Shortened(text, maxValue)
	if strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c > '~' || c == '"' || c == '\\' }) {
		quoted, err := json.Marshal(text)
		if err != nil {
			panic(fmt.Sprintf("audit: %v", err)) // every string has a form in JSON
		}
		return append(b, quoted...)
	}
	return append(append(append(b, '"'), text...), '"')
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

// operator returns the name or number of the user that runs the server.
var operator = sync.OnceValue(func() string {
	u, err := user.Current()
	if err != nil {
		return "unknown"
	}
	return cmp.Or(u.Username, u.Uid)
})

// ZooKeeper writes the line of ZooKeeper's appender RFAAUDIT in logback.xml, for ZooKeeper's events
// only. Unlike in ZooKeeper 3.9, tabs and line ends are removed from values, so no client can forge
// a line or a field.
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
		add("session", e.Session.String())
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
	// In a multi, ZooKeeper finds the type by the path asked for, and never that of TTL znodes.
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
	value = printable.Shortened(value, maxValue)
	if !strings.ContainsAny(value, "\t\n\r") && utf8.ValidString(value) {
		return value
	}
	return strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(strings.ToValidUTF8(value, "\ufffd"))
}

// users joins the names of identities as ZooKeeper does, without empty names and without the scheme
// super. A connection's identities are in ZooKeeper's order already.
func users(ids []proto.ID) string {
	var names []string
	for _, id := range ids {
		if n := id.User(); strings.TrimSpace(n) != "" && id.Scheme != "super" {
			names = append(names, n)
		}
	}
	return strings.Join(names, ",")
}

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
		b.WriteString(a.ID.Scheme + ":" + shown(a.ID).ID + ":" + a.Perms.Letters())
	}
	return b.String()
}

// shown returns the id of an ACL entry, empty for the scheme auth: the server ignores the id there,
// and users of zkCli.sh write auth:user:password.
func shown(id proto.ID) proto.ID {
	if id.Scheme == "auth" {
		id.ID = ""
	}
	return id
}
