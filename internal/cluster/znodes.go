package cluster

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/gozkd/gozkd/internal/printable"
	"github.com/gozkd/gozkd/server"
)

// Load puts data at paths; see server.Load.
func (c *Cluster) Load(ctx context.Context, znodes map[string][]byte) error {
	return c.change(ctx, func(ctx context.Context, s *server.Server) error { return s.Load(ctx, znodes) })
}

// Walk visits the znode at path and all below it, in the state of the leader; see server.Walk. It
// returns ErrNotFound if there is no znode at path.
func (c *Cluster) Walk(ctx context.Context, path string, f func(server.Znode) bool) error {
	return c.atLeader(ctx, func(ctx context.Context, s *server.Server) error {
		switch err := s.CatchUp(ctx); {
		case err != nil:
			return err
		case !s.Walk(path, f):
			return errorf(ErrNotFound, "cluster: there is no znode %s", path)
		}
		return nil
	})
}

// maxDumped is how many znodes Dump lists.
const maxDumped = 1000

// Dump describes the members, the sessions and the znodes of the member with the highest zxid. Dump
// does not wait.
func (c *Cluster) Dump(w io.Writer) {
	// w is a buffer, or nobody misses the text.
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }
	var most *server.Server
	var zxid int64
	for _, m := range c.members {
		s, state := m.Server(), m.State()
		say("%s %s: %s", m.Name(), m.Address(), state)
		if s == nil || state == Paused { // a paused server may hold locks
			say("\n")
			continue
		}
		st := s.Status()
		if most == nil || st.Zxid > zxid {
			most, zxid = s, st.Zxid
		}
		say(", %s, leader %d, zxid 0x%x", st.Mode, st.Leader, uint64(st.Zxid))
		if !st.Serving {
			say(", not serving")
		}
		say("\n")
	}
	if most == nil {
		return
	}
	for _, session := range most.Facts().Sessions() {
		at := "not connected"
		if m, err := c.MemberOf(session.ID); err == nil {
			at = "connected to " + m.Name()
		}
		say("session 0x%x: timeout %v, %s, ephemerals: %d\n", uint64(session.ID), session.Timeout, at, session.Ephemerals)
	}
	znodes := 0
	most.Walk("/", func(z server.Znode) bool {
		if znodes++; znodes <= maxDumped {
			say("%s\n", describe(&z))
		}
		return true
	})
	if znodes > maxDumped {
		say("… and %d more znodes\n", znodes-maxDumped)
	}
}

func describe(z *server.Znode) string {
	line := z.Path + " = " + shown(z.Data)
	st := &z.Stat
	if st.EphemeralOwner != 0 {
		line += fmt.Sprintf(" owner 0x%x", uint64(st.EphemeralOwner))
	}
	return line + fmt.Sprintf(" version %d, made %s", st.Version, time.UnixMilli(st.CtimeMs).UTC().Format("15:04:05.000"))
}

// shown returns data for a line: quoted if it is UTF-8, otherwise in hexadecimal, and cut if long.
func shown(data []byte) string {
	const most = 120
	size := ""
	if len(data) > most {
		size = fmt.Sprintf(" (%d bytes)", len(data))
	}
	switch {
	case data == nil:
		return "null"
	case utf8.Valid(data):
		return strconv.Quote(printable.Shortened(string(data), most)) + size
	}
	return fmt.Sprintf("0x%x", data[:min(len(data), most)]) + size
}
