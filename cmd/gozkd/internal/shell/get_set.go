package shell

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

func runGet(ctx context.Context, c *call) error {
	path := c.args[0]
	data, st, err := c.zk.Get(ctx, path, c.watchWanted("get"))
	if err != nil {
		return err
	}
	hex, encoded := c.has("x"), c.has("b")
	r := getResult{path, dataOf(data, hex || encoded), c.wantedStat(st)}
	var text string
	shown := data
	if data == nil {
		shown = []byte(javaNull)
	}
	switch {
	case hex:
		text = hexDump(shown) + "\n"
	case encoded:
		text = base64.StdEncoding.EncodeToString(shown) + "\n"
	case !c.singleCommand:
		text = jute.Text(shown) + "\n"
	default: // byte for byte, without a final newline
		text = string(data)
		if r.Stat != nil && text != "" {
			text += "\n"
		}
	}
	return c.print(r, text+r.Stat.String())
}

type getResult struct {
	Path string `json:"path"`
	jsonData
	Stat *stat `json:"stat,omitempty"`
}

// hexDump returns data in lines of 16 bytes, in the frame of netty's ByteBufUtil.prettyHexDump,
// without a final newline. It returns "" for no data.
func hexDump(data []byte) string {
	if len(data) == 0 {
		return ""
	}
	const rule = "+--------+-------------------------------------------------+----------------+"
	var b strings.Builder
	b.WriteString("         +-------------------------------------------------+\n" +
		"         |  0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f |\n" + rule)
	for at := 0; at < len(data); at += 16 {
		row := data[at:min(at+16, len(data))]
		fmt.Fprintf(&b, "\n|%08x|%-48s |", at, fmt.Sprintf(" % x", row))
		for _, c := range row {
			if c <= 0x1F || c >= 0x7F {
				c = '.'
			}
			b.WriteByte(c)
		}
		b.WriteString(strings.Repeat(" ", 16-len(row)) + "|")
	}
	b.WriteString("\n" + rule)
	return b.String()
}

func runSet(ctx context.Context, c *call) error {
	path, data := c.args[0], []byte(c.args[1])
	if c.has("b") {
		var err error
		if data, err = base64.StdEncoding.DecodeString(c.args[1]); err != nil {
			return usageError("the data is not base64: " + err.Error())
		}
	}
	version, err := c.version()
	if err != nil {
		return err
	}
	st, err := c.zk.Set(ctx, path, data, version)
	if err != nil {
		return err
	}
	return c.showStat(path, st)
}

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

// stat is a Stat for output, with times in a location. A nil *stat prints nothing.
type stat struct {
	proto.Stat
	in *time.Location
}

func (s *Shell) stat(st proto.Stat) *stat { return &stat{st, s.location} }

// String returns a line per field.
func (s *stat) String() string {
	if s == nil {
		return ""
	}
	date := func(ms int64) string { // as java.util.Date.toString
		return time.UnixMilli(ms).In(s.in).Format("Mon Jan 02 15:04:05 MST 2006")
	}
	return fmt.Sprintf("cZxid = 0x%x\nctime = %s\nmZxid = 0x%x\nmtime = %s\npZxid = 0x%x\n"+
		"cversion = %d\ndataVersion = %d\naclVersion = %d\nephemeralOwner = 0x%x\ndataLength = %d\nnumChildren = %d\n",
		uint64(s.Czxid), date(s.CtimeMs), uint64(s.Mzxid), date(s.MtimeMs), uint64(s.Pzxid),
		s.Cversion, s.Version, s.Aversion, uint64(s.EphemeralOwner), s.DataLength, s.NumChildren)
}

func runStat(ctx context.Context, c *call) error {
	path := c.args[0]
	st, ok, err := c.zk.Exists(ctx, path, c.watchWanted("stat"))
	if err != nil {
		return err
	}
	if !ok {
		return &client.Error{Op: "exists", Path: path, Code: proto.ErrNoNode}
	}
	return c.printStat(path, st)
}

func (c *call) printStat(path string, st proto.Stat) error {
	r := struct {
		Path string `json:"path"`
		Stat *stat  `json:"stat"`
	}{path, c.stat(st)}
	return c.print(r, r.Stat.String())
}

// watchWanted reports whether to set a watch: by -w, or by a second argument, the older form.
func (c *call) watchWanted(name string) bool {
	if len(c.args) < 2 {
		return c.has("w")
	}
	options := "[-s] [-w]"
	if name != "get" {
		options = "[-w]"
	}
	c.say(c.err, fmt.Sprintf("'%s path [watch]' has been deprecated. Please use '%s %s path' instead.", name, name, options))
	return true
}
