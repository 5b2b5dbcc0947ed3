package server

import (
	"cmp"
	"context"
	"net"

	"github.com/gozkd/gozkd/audit"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/memnet"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server/identity"
)

// Caller is a client whose identity the embedding program has established, for example by HTTP.
type Caller struct {
	// Address is the client's host, without a port: its ip identity. Empty: this machine.
	Address string
	// IDs are further identities. Those that Server.Identities returns have the permissions of
	// clients that prove the same identity by the protocol.
	IDs []proto.ID
	// Origin says in the audit log how the client came, for example "http".
	Origin string
	// TLS: the client's connection to the program is encrypted.
	TLS bool
	// Unsampled leaves the requests, which should only read, out of the hot paths and clients.
	Unsampled bool
}

// DialAs is Dial for a client with other identities. The server trusts the program: it takes the
// identities without a proof. Config.MaxClientConns neither bounds nor counts these connections, so
// the program must bound them.
func (s *Server) DialAs(ctx context.Context, caller Caller) (net.Conn, error) {
	return s.dial(ctx, net.JoinHostPort(cmp.Or(caller.Address, inProcessHost), "0"), &caller)
}

// dial connects a client within the process. caller is nil for one without other identities.
func (s *Server) dial(ctx context.Context, from string, caller *Caller) (net.Conn, error) {
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case !s.life.Accepting.Load():
		return nil, &net.OpError{Op: "dial", Net: "memory", Err: s.life.WhyNot()}
	}
	client, ours := memnet.Pipe(from, inProcessAddress)
	s.admit(ours, portPlain, caller)
	return client, nil
}

// Audit puts an event into the audit log, if there is one: for actions of callers in the program
// that embeds the server. Time is set if it is zero.
func (s *Server) Audit(e audit.Event) {
	if s.cfg.Audit == nil {
		return
	}
	if e.Time.IsZero() {
		e.Time = s.cfg.Now()
	}
	e.IDs = proto.ShownIDs(e.IDs)
	s.cfg.Audit.Record(&e)
}

// MaxBuffer returns how many bytes a request may have: Config.MaxBuffer.
func (s *Server) MaxBuffer() int { return int(s.cfg.MaxBuffer) }

// MissedEvent gets an event of Server.Missed.
type MissedEvent = func(zxid proto.Zxid, typ proto.EventType, path string)

// Missed calls f with the events that the persistent watches of a request would have brought a
// caller since RelativeZxid, in order, up to the zxid that Missed returns. It returns false if they
// are not known, or too many. See docs/adr/0017-replay.md.
func (s *Server) Missed(caller Caller, q *proto.SetWatchesRequest, f MissedEvent) (upTo proto.Zxid, ok bool) {
	client := identity.NewClient(cmp.Or(caller.Address, inProcessHost), caller.IDs...)
	who := datatree.Caller{IDs: client.IDs, SkipACL: s.cfg.SkipACL}
	r := newReplay(&s.state, 0, q)
	var events []missedEvent
	for done := false; !done; {
		s.conns.turns.begin()
		dropped := s.state.look(func() {
			if done = r.slice(); done {
				upTo = s.state.tree.LastZxid()
				events, ok = r.finish(who)
			}
		})
		s.conns.turns.end()
		if dropped != nil {
			return 0, false
		}
	}
	for _, e := range events {
		f(e.zxid, e.typ, e.path)
	}
	return upTo, ok
}
