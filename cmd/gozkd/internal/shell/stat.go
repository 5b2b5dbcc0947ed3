package shell

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
)

// javaDate is the layout of java.util.Date's toString.
const javaDate = "Mon Jan 02 15:04:05 MST 2006"

// stat is a Stat as it is printed, with times in a location.
type stat struct {
	proto.Stat
	in *time.Location
}

// stat makes a Stat printable.
func (s *Shell) stat(st proto.Stat) *stat { return &stat{st, s.location} }

func (s *stat) text(out, _ io.Writer) {
	if s == nil {
		return
	}
	date := func(ms int64) string { return time.UnixMilli(ms).In(s.in).Format(javaDate) }
	_, _ = fmt.Fprintf(out, "cZxid = 0x%x\nctime = %s\nmZxid = 0x%x\nmtime = %s\npZxid = 0x%x\n"+
		"cversion = %d\ndataVersion = %d\naclVersion = %d\nephemeralOwner = 0x%x\ndataLength = %d\nnumChildren = %d\n",
		uint64(s.Czxid), date(s.CtimeMs), uint64(s.Mzxid), date(s.MtimeMs), uint64(s.Pzxid),
		s.Cversion, s.Version, s.Aversion, uint64(s.EphemeralOwner), s.DataLength, s.NumChildren)
}

func runStat(ctx context.Context, c *call) error {
	path := c.args[0]
	watch := c.watchWanted("stat")
	if err := checkPath(path); err != nil {
		return err
	}
	st, ok, err := c.zk.Exists(ctx, path, watch)
	if err != nil {
		return err
	}
	if !ok {
		return &client.Error{Op: "exists", Path: path, Code: proto.ErrNoNode}
	}
	return c.show(statResult{path, c.stat(st)})
}

type statResult struct {
	Path string `json:"path"`
	Stat *stat  `json:"stat"`
}

func (r statResult) text(out, err io.Writer) { r.Stat.text(out, err) }

// watchWanted reports whether a watch is to be set. An argument behind the path asks for one too, as it did before there
// were flags.
func (c *call) watchWanted(name string) bool {
	if len(c.args) < 2 {
		return c.has("w")
	}
	options := "[-s] [-w]"
	switch name {
	case "ls", "stat":
		options = "[-w]"
	}
	c.say(c.err, fmt.Sprintf("'%s path [watch]' has been deprecated. Please use '%s %s path' instead.", name, name, options))
	return true
}
