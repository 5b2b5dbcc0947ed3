package subtree

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/strictjson"
	"github.com/gozkd/gozkd/proto"
)

// The kinds of znodes in an export.
const (
	Persistent = "persistent"
	Ephemeral  = "ephemeral"
	Container  = "container"
	TTL        = "ttl"
)

// Record is a znode in an export, on a line of JSON. docs/reference/shell.md describes the format.
type Record struct {
	Path       string          `json:"path"`           // below the root of the export, which is "/"
	Kind       string          `json:"kind,omitempty"` // empty: persistent
	TTLMs      int64           `json:"ttl_ms,omitempty"`
	Owner      string          `json:"owner,omitempty"` // of an ephemeral znode
	Data       *string         `json:"data,omitempty"`  // the data if it is UTF-8; without both data fields the data is null
	DataBase64 []byte          `json:"data_base64,omitempty"`
	ACL        []proto.ACLJSON `json:"acl,omitempty"`       // missing: world:anyone:cdrwa
	Creations  int64           `json:"creations,omitempty"` // children ever created: the counter of sequential names
}

// Head is the first line of an export.
type Head struct {
	Version int    `json:"gozkd_export"` // formatVersion
	Root    string `json:"root"`         // path of the exported root
	Zxid    string `json:"zxid"`         // highest zxid seen when the export began
}

// tail is the last line of an export. Without it the export was truncated.
type tail struct {
	End    bool  `json:"end"`
	Znodes int64 `json:"znodes"`
}

const (
	formatVersion = 1
	maxTTLMs      = 1<<40 - 1 // a Stat has 40 bits for the TTL
	maxLine       = 32 << 20  // far above jute.maxbuffer with every byte escaped
)

// Record returns the record of a znode.
func (n *Znode) Record() Record {
	r := Record{Path: cmp.Or(n.Rel, "/"), Creations: creations(n.Stat)}
	switch {
	case n.Stat.EphemeralOwner != 0:
		r.Kind, r.Owner = Ephemeral, n.Stat.EphemeralOwner.String()
	case n.Container:
		r.Kind = Container
	case n.TTLMs > 0:
		r.Kind, r.TTLMs = TTL, n.TTLMs
	}
	switch {
	case n.Data == nil:
	case utf8.Valid(n.Data):
		r.Data = new(string(n.Data))
	default:
		r.DataBase64 = n.Data
	}
	if n.ACL != nil && !slices.Equal(n.ACL, proto.OpenACL()) {
		r.ACL = proto.ACLToJSON(n.ACL)
	}
	return r
}

// data returns the data, or nil for null.
func (r *Record) data() []byte {
	if r.Data != nil {
		return []byte(*r.Data)
	}
	return r.DataBase64
}

func (r *Record) rel() string { return strings.TrimSuffix(r.Path, "/") }

func (r *Record) options() (o client.CreateOptions, err error) {
	switch r.Kind {
	case "", Persistent:
	case Ephemeral:
		o.Ephemeral = true
	case Container:
		o.Container = true
	case TTL:
		o.TTL = time.Duration(r.TTLMs) * time.Millisecond
	default:
		return o, fmt.Errorf("unknown kind %q", r.Kind)
	}
	if (r.Kind == TTL) != (r.TTLMs > 0) || r.TTLMs > maxTTLMs {
		return o, fmt.Errorf("kind %q with ttl_ms %d", r.Kind, r.TTLMs)
	}
	o.ACL, err = proto.ACLFromJSON(r.ACL)
	return o, err
}

// Masked reports whether the server hid the password hash of an entry. The server does so if the
// session may read but not change the ACL. A masked list cannot be copied.
func Masked(acl []proto.ACL) bool {
	return slices.ContainsFunc(acl, func(a proto.ACL) bool { return a.ID.Scheme == "digest" && strings.HasSuffix(a.ID.ID, ":x") })
}

func (r *Record) check() error {
	if err := proto.ValidatePath(r.Path); err != nil {
		return err
	}
	if r.Data != nil && r.DataBase64 != nil {
		return errors.New("both data and data_base64")
	}
	if r.Creations < 0 || r.Creations >= maxCreations {
		return fmt.Errorf("creations %d: must be from 0 to %d", r.Creations, int64(maxCreations)-1)
	}
	_, err := r.options()
	return err
}

// Reader reads an export.
type Reader struct {
	Head  Head
	lines *bufio.Scanner
	line  int
	count int64
	ended bool
}

// NewReader reads the first line of an export.
func NewReader(r io.Reader) (*Reader, error) {
	t := &Reader{lines: bufio.NewScanner(r)}
	t.lines.Buffer(nil, maxLine)
	if !t.lines.Scan() {
		return nil, errors.Join(errors.New("not an export: it is empty"), t.lines.Err())
	}
	t.line++
	if err := strictjson.Decode(t.lines.Bytes(), &t.Head); err != nil || t.Head.Version == 0 {
		return nil, errors.Join(errors.New("not an export: the first line must begin with {\"gozkd_export\""), err)
	}
	if t.Head.Version != formatVersion {
		return nil, fmt.Errorf("export format %d is not supported, only %d", t.Head.Version, formatVersion)
	}
	return t, nil
}

// Next returns the next record, or io.EOF after the last line. A truncated export is an error.
func (t *Reader) Next() (Record, error) {
	var r Record
	if t.ended {
		return r, io.EOF
	}
	if !t.lines.Scan() {
		if err := t.lines.Err(); err != nil {
			return r, fmt.Errorf("line %d: %w", t.line+1, err)
		}
		return r, fmt.Errorf("the export ends after line %d without an end line: it is truncated", t.line)
	}
	t.line++
	b := t.lines.Bytes()
	if bytes.HasPrefix(b, []byte(`{"end"`)) {
		return r, t.finish(b)
	}
	err := strictjson.Decode(b, &r)
	if err == nil {
		err = r.check()
	}
	if err != nil {
		return Record{}, fmt.Errorf("line %d: %w", t.line, err)
	}
	t.count++
	return r, nil
}

func (t *Reader) finish(b []byte) error {
	var end tail
	if err := strictjson.Decode(b, &end); err != nil {
		return fmt.Errorf("line %d: %w", t.line, err)
	}
	if end.Znodes != t.count {
		return fmt.Errorf("line %d: the export has %d znodes, its end line says %d", t.line, t.count, end.Znodes)
	}
	t.ended = true
	return io.EOF
}

// Kinds maps the paths of container and TTL znodes to the TTL in milliseconds, or 0 for a
// container. A Stat does not tell these znodes from persistent ones. Nil: the kinds are unknown.
type Kinds map[string]int64

// ParseKinds parses the answer to kind (docs/reference/monitoring.md) for a client with a chroot.
func ParseKinds(answer, chroot string) (Kinds, error) {
	kinds, lines, total := Kinds{}, 0, ""
	for line := range strings.Lines(answer) {
		if total != "" {
			return nil, fmt.Errorf("line %d follows the last line", lines+1)
		}
		kind, rest, more := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !more {
			total = kind
			continue
		}
		lines++
		var ms int64
		path := rest
		if kind == TTL {
			var number string
			number, path, _ = strings.Cut(rest, "\t")
			var err error
			if ms, err = strconv.ParseInt(number, 10, 64); err != nil || ms <= 0 {
				return nil, fmt.Errorf("line %d: invalid TTL %q", lines, number)
			}
		} else if kind != Container {
			return nil, fmt.Errorf("line %d: unknown kind %q", lines, kind)
		}
		if path, ok := strings.CutPrefix(path, chroot); ok && strings.HasPrefix(path, "/") {
			kinds[path] = ms
		}
	}
	if total != strconv.Itoa(lines) {
		return nil, fmt.Errorf("%d lines instead of the announced %q: the answer is truncated", lines, total)
	}
	return kinds, nil
}

func (k Kinds) note(n *Znode) {
	if ms, ok := k[n.Path]; ok {
		n.Container, n.TTLMs = ms == 0, ms
	}
}

// Exported counts the contents of an export.
type Exported struct {
	Znodes, Ephemerals int64
	Bytes              int64    // of data
	Missing            []string // the first paths that could not be read
	NMissing           int64    // number of paths that could not be read
	Masked             int64    // znodes whose ACL the server did not show in full
}

// maxNamed bounds the paths in Exported.Missing.
const maxNamed = 10

// Export writes a subtree as text, one line per Write, and calls seen with the counts after each
// znode.
func Export(ctx context.Context, from Side, withACL bool, w io.Writer, seen func(*Exported)) (*Exported, error) {
	e, lines := &Exported{}, json.NewEncoder(w)
	lines.SetEscapeHTML(false)
	if err := retry(func() error { _, err := from.ZK.Sync(ctx, from.Path); return err }); err != nil {
		return e, err
	}
	if err := lines.Encode(Head{Version: formatVersion, Root: from.Path, Zxid: from.ZK.LastZxid().String()}); err != nil {
		return e, err
	}
	err := Walk(ctx, from.ZK, from.Path, Options{Data: true, ACL: withACL, Below: All, NoSystem: true, Kinds: from.Kinds}, func(n *Znode) error {
		if n.Denied != nil {
			if e.NMissing++; len(e.Missing) < maxNamed {
				e.Missing = append(e.Missing, n.Path)
			}
			return nil
		}
		e.Znodes++
		e.Bytes += int64(len(n.Data))
		if n.Stat.EphemeralOwner != 0 {
			e.Ephemerals++
		}
		if Masked(n.ACL) {
			e.Masked++
		}
		defer seen(e)
		return lines.Encode(n.Record())
	})
	if err != nil {
		return e, fmt.Errorf("after %d znodes: %w", e.Znodes, err)
	}
	return e, lines.Encode(tail{End: true, Znodes: e.Znodes})
}
