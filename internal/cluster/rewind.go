package cluster

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// Snapshot holds the znodes at one moment, parents before their children. The zero value is empty.
type Snapshot struct{ znodes []server.Znode }

// Snapshot returns the znodes, except those of the ensemble's configuration, for Rewind.
func (c *Cluster) Snapshot(ctx context.Context) (snapshot Snapshot, err error) {
	err = c.atLeader(ctx, func(ctx context.Context, s *server.Server) error {
		if err := s.CatchUp(ctx); err != nil {
			return err
		}
		snapshot.znodes = snapshotOf(s)
		return nil
	})
	return snapshot, err
}

func snapshotOf(s *server.Server) (znodes []server.Znode) {
	s.Walk("/", func(z server.Znode) bool {
		if z.Path != configPath && !strings.HasPrefix(z.Path, configPath+"/") {
			znodes = append(znodes, z)
		}
		return true
	})
	return znodes
}

const configPath = "/zookeeper/config" // the ensemble's members; Rewind leaves it alone

// Rewind restores the znodes of a snapshot: data, ACLs, ephemerals, containers and times to live.
// It compares the present znodes with the snapshot and writes the difference as the server's own
// requests. Unchanged znodes keep their versions and zxids; the others get new versions and zxids,
// as if a client had written them. Sessions stay as they are: the ephemerals of sessions that have
// ended do not come back. The changes are a transaction, followed by another for each session whose
// ephemerals come back and for each znode whose ACL changes.
func (c *Cluster) Rewind(ctx context.Context, snapshot Snapshot) error {
	if len(snapshot.znodes) == 0 {
		return errorf(ErrInvalid, "cluster: rewind: the snapshot is empty; take it with Snapshot")
	}
	return c.change(ctx, func(ctx context.Context, s *server.Server) error {
		for {
			if err := s.CatchUp(ctx); err != nil {
				return err
			}
			err := planRewind(s, snapshot.znodes).carryOut(ctx, s)
			if !raced(err) {
				return err
			}
		}
	})
}

// raced reports whether a client's write or the end of a session made a plan impossible.
func raced(err error) bool {
	return slices.ContainsFunc([]error{
		proto.ErrNoNode, proto.ErrNodeExists, proto.ErrNotEmpty, proto.ErrNoChildrenForEphemerals, proto.ErrSessionExpired,
		proto.ErrSessionMoved, server.ErrNoSession,
	}, func(cause error) bool { return errors.Is(err, cause) })
}

// rewindPlan is the writes that turn the present znodes into those of a snapshot.
type rewindPlan struct {
	ops        []proto.MultiOp           // deletes, creates and new data
	ephemerals map[int64][]proto.MultiOp // creates, by session
	acls       []server.Znode            // znodes whose ACL differs
}

func planRewind(s *server.Server, wanted []server.Znode) *rewindPlan {
	p := &rewindPlan{ephemerals: make(map[int64][]proto.MultiOp)}
	want := make(map[string]*server.Znode, len(wanted))
	for i := range wanted {
		want[wanted[i].Path] = &wanted[i]
	}
	alive := make(map[int64]bool)
	for _, session := range s.Facts().Sessions() {
		alive[session.ID] = true
	}
	stay := make(map[string]bool)
	var gone, sets []proto.MultiOp
	for _, now := range snapshotOf(s) { // parents first
		w := want[now.Path]
		if w == nil || !sameKind(w, &now) || now.Path != "/" && !stay[proto.ParentPath(now.Path)] {
			gone = append(gone, proto.MultiOp{Op: proto.OpDelete, Path: now.Path, Version: -1})
			continue
		}
		stay[now.Path] = true
		// The server writes this data itself.
		stats := strings.HasPrefix(now.Path, proto.QuotaRoot) && strings.HasSuffix(now.Path, proto.QuotaStats)
		if !stats && (string(now.Data) != string(w.Data) || (now.Data == nil) != (w.Data == nil)) {
			sets = append(sets, proto.MultiOp{Op: proto.OpSetData, Path: w.Path, Data: w.Data, Version: -1})
		}
		if !slices.Equal(now.ACL, w.ACL) {
			p.acls = append(p.acls, *w)
		}
	}
	slices.Reverse(gone) // children first
	p.ops = gone
	for i := range wanted {
		switch z := &wanted[i]; {
		case stay[z.Path]:
		case z.Mode != proto.ModeEphemeral:
			p.ops = append(p.ops, createOp(z))
		case alive[int64(z.Stat.EphemeralOwner)]:
			owner := int64(z.Stat.EphemeralOwner)
			p.ephemerals[owner] = append(p.ephemerals[owner], createOp(z))
		}
	}
	p.ops = append(p.ops, sets...)
	return p
}

// sameKind reports whether new data and a new ACL can turn now into want. A container that has had
// children cannot become one that has not: the server would delete it.
func sameKind(want, now *server.Znode) bool {
	used := want.Mode == proto.ModeContainer && want.Stat.Cversion == 0 && now.Stat.Cversion != 0
	return want.Mode == now.Mode && want.TTLMs == now.TTLMs && want.Stat.EphemeralOwner == now.Stat.EphemeralOwner && !used
}

func createOp(z *server.Znode) proto.MultiOp {
	op := proto.MultiOp{Op: proto.OpCreate, Path: z.Path, Data: z.Data, ACL: z.ACL, Mode: z.Mode, TTL: z.TTLMs}
	switch z.Mode {
	case proto.ModeContainer:
		op.Op = proto.OpCreateContainer
	case proto.ModePersistentTTL:
		op.Op = proto.OpCreateTTL
	}
	return op
}

func (p *rewindPlan) carryOut(ctx context.Context, s *server.Server) error {
	if len(p.ops) > 0 {
		if err := s.Multi(ctx, 0, p.ops...); err != nil {
			return err
		}
	}
	for session, ops := range p.ephemerals {
		if err := s.Multi(ctx, session, ops...); err != nil {
			return err
		}
	}
	for i := range p.acls {
		if err := s.SetACL(ctx, p.acls[i].Path, p.acls[i].ACL); err != nil {
			return err
		}
	}
	return nil
}
