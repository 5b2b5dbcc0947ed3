package cluster

import (
	"context"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// Load puts data at paths; see server.Load.
func (c *Cluster) Load(ctx context.Context, znodes map[string][]byte) error {
	err := c.atLeader(ctx, func(ctx context.Context, s *server.Server) error { return s.Load(ctx, znodes) })
	if err != nil {
		return err
	}
	return c.settle(ctx)
}

// Walk goes through the znodes at path and below as the leader has them; see server.Walk. Without a znode at path it returns ErrNotFound.
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

// maxDumped is how many znodes a person may want to look through.
const maxDumped = 1000

// Dump writes how things are, for people: members, sessions, and the znodes of the member that knows most. It waits for nothing.
func (c *Cluster) Dump(w io.Writer) {
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) } // to a buffer, or it is lost
	var most *server.Server
	var zxid int64
	for _, m := range c.members {
		s, state := m.Server(), m.State()
		say("%s %s: %s", m.name(), m.Address(), state)
		if s == nil || state == Paused { // who stands still may hold locks
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
	for _, session := range most.Sessions() {
		at := "not connected"
		if m, err := c.MemberOf(session.ID); err == nil {
			at = "connected to " + m.name()
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
		say("… and %d znodes more\n", znodes-maxDumped)
	}
}

// describe is one line on a znode.
func describe(z *server.Znode) string {
	line := z.Path + " = " + shown(z.Data)
	st := &z.Stat
	if st.EphemeralOwner != 0 {
		line += fmt.Sprintf(" %s", ownerText(st))
	}
	return line + fmt.Sprintf(" version %d, made %s", st.Version, time.UnixMilli(st.CtimeMs).UTC().Format("15:04:05.000"))
}

// shown is data as a person wants to see it: quoted if it is text, else as hexadecimal digits, and no more of it than fits a line.
func shown(data []byte) string {
	const most = 120
	rest := ""
	if len(data) > most {
		rest = fmt.Sprintf("… (%d bytes)", len(data))
		data = data[:most]
		for len(data) > most-utf8.UTFMax && !utf8.Valid(data) { // a character that was cut
			data = data[:len(data)-1]
		}
	}
	switch {
	case data == nil:
		return "null"
	case utf8.Valid(data):
		return fmt.Sprintf("%q%s", data, rest)
	}
	return fmt.Sprintf("0x%x%s", data, rest)
}

// ownerOf says what the owner field of an ephemeral, a container or a TTL znode stands for.
func ownerText(st *proto.Stat) string {
	return fmt.Sprintf("owner 0x%x", uint64(st.EphemeralOwner))
}
