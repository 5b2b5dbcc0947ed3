package shell

import (
	"context"
	"encoding/base64"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gozkd/gozkd/client"
)

func runGet(ctx context.Context, c *call) error {
	path := c.args[0]
	watch := c.watchWanted("get")
	if err := checkPath(path); err != nil {
		return err
	}
	data, st, err := c.zk.Get(ctx, path, watch)
	if err != nil {
		return err
	}
	r := getResult{Path: path, Data: data, raw: c.once}
	switch {
	case c.has("x"):
		r.format = hexDump
	case c.has("b"):
		r.format = base64.StdEncoding.EncodeToString
	}
	if c.has("s") {
		r.Stat = c.stat(st)
	}
	return c.show(r)
}

type getResult struct {
	Path string `json:"path"`
	Data []byte `json:"data"` // nil is null
	Stat *stat  `json:"stat,omitempty"`

	format func([]byte) string // nil: as it is
	raw    bool                // without the newline behind it, and not as text
}

func (r getResult) text(out, err io.Writer) {
	if r.raw && r.format == nil {
		_, _ = out.Write(r.Data)
		if r.Stat != nil && len(r.Data) > 0 {
			_, _ = io.WriteString(out, "\n")
		}
		r.Stat.text(out, err)
		return
	}
	data, format := r.Data, r.format
	if data == nil {
		data = []byte("null")
	}
	if format == nil {
		format = javaText
	}
	_, _ = io.WriteString(out, format(data)+"\n")
	r.Stat.text(out, err)
}

// javaText returns data as Java's decoder of UTF-8 reads it: U+FFFD for each longest piece of a character that does not go
// on as it should. A surrogate counts as a character then.
func javaText(data []byte) string {
	if utf8.Valid(data) {
		return string(data)
	}
	var b strings.Builder
	for len(data) > 0 {
		r, n := utf8.DecodeRune(data)
		if r == utf8.RuneError && n == 1 {
			n = brokenLen(data)
		}
		b.WriteRune(r)
		data = data[n:]
	}
	return b.String()
}

// brokenLen returns how many of the bytes at the beginning of data are the beginning of one character, at least 1; the
// character is not all there.
func brokenLen(data []byte) int {
	low, high, more := byte(0x80), byte(0xBF), 0
	switch c := data[0]; {
	case c >= 0xC2 && c <= 0xDF:
		more = 1
	case c >= 0xE0 && c <= 0xEF:
		more = 2
		if c == 0xE0 {
			low = 0xA0
		}
	case c >= 0xF0 && c <= 0xF4:
		more = 3
		if c == 0xF0 {
			low = 0x90
		}
		if c == 0xF4 {
			high = 0x8F
		}
	}
	n := 1
	for n <= more && n < len(data) && data[n] >= low && data[n] <= high {
		low, high = 0x80, 0xBF
		n++
	}
	return n
}

func runSet(ctx context.Context, c *call) error {
	path, data := c.args[0], []byte(c.args[1])
	if c.has("b") {
		var err error
		if data, err = base64.StdEncoding.DecodeString(c.args[1]); err != nil {
			return usageError("the data is no base64: " + err.Error())
		}
	}
	version, err := c.version()
	if err != nil {
		return err
	}
	if err := checkPath(path); err != nil {
		return err
	}
	st, err := c.zk.Set(ctx, path, data, version)
	if err != nil {
		return err
	}
	return c.showStat(path, st)
}

// version is the value of -v, or that of any version.
func (c *call) version() (int32, error) {
	if !c.has("v") {
		return client.AnyVersion, nil
	}
	return parseVersion(c.value("v"))
}

func parseVersion(s string) (int32, error) {
	v, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		return 0, usageError("the version must be an int value: " + s)
	}
	return int32(v), nil
}
