package mirror

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/clientflags"
	"github.com/gozkd/gozkd/internal/backoff"
	"github.com/gozkd/gozkd/internal/printable"
	"github.com/gozkd/gozkd/internal/probe"
	"github.com/gozkd/gozkd/internal/subtree"
	"github.com/gozkd/gozkd/proto"
)

const (
	firstPause = 50 * time.Millisecond // after an error
	lastPause  = 30 * time.Second
	conflicts  = 3  // attempts for changes that conflict, before the whole subtrees are compared
	maxPasses  = 10 // of --once
)

// errFatal marks an error that another attempt does not cure.
var errFatal = errors.New("the mirror stops")

// endpoint is how to connect to the source or to the target.
type endpoint struct {
	client.Config
	security *clientflags.Security
}

// follower copies a subtree and follows its changes.
type follower struct {
	from, to               endpoint
	path                   string
	overwrite              bool // the target may lose data at the start
	once                   bool
	withoutACL             bool
	interval               time.Duration // between comparisons of the whole subtrees
	creations              int64         // see subtree.Mirror
	line                   func(label, format string, args ...any)
	source, target         *client.Client // nil: not connected
	changes                *changes
	kinds, targetKinds     subtree.Kinds         // nil: the server has not told them
	kindsAt, targetKindsAt proto.Zxid            // see subtree.Side
	renewed                map[string]proto.Zxid // see subtree.Mirror
	warned                 bool                  // that the source does not tell the kinds
	highest                proto.Zxid
	compared               time.Time // when the last comparison of the whole subtrees ended
	followed               int64     // changes written since then
}

// run mirrors until ctx ends; with once, until both sides are equal. An error before the first copy
// is final, because an address or a permission is probably wrong. Later errors are printed, and
// tried again.
func (f *follower) run(ctx context.Context) error {
	defer f.disconnect()
	if err := f.connect(ctx); err != nil {
		return err
	}
	if err := f.admit(ctx); err != nil {
		return err
	}
	if f.once {
		return f.untilEqual(ctx)
	}
	pause := firstPause
	for f.changes.compareAll(); ctx.Err() == nil; {
		err := f.connect(ctx)
		if err == nil {
			err = f.next(ctx)
		}
		switch {
		case ctx.Err() != nil:
		case errors.Is(err, errFatal):
			return err
		case err != nil:
			f.line("retrying", "in %v: %v", pause, err)
			f.changes.compareAll()
			backoff.Sleep(ctx, pause)
			pause = min(2*pause, lastPause)
		default:
			pause = firstPause
		}
	}
	return nil
}

// connect opens the sessions that are missing or have ended.
func (f *follower) connect(ctx context.Context) error {
	if f.target == nil || f.target.Err() != nil {
		cfg := f.to
		cfg.OnEvent = func(e client.Event) { // also of a container or TTL znode that the server deletes by itself
			if e.Type == client.EventSession || e.Type == proto.EventDeleted {
				f.changes.event(e)
			}
		}
		zk, err := open(ctx, f.target, cfg)
		if f.target = zk; err == nil && !f.once {
			err = f.watch(ctx, zk, "target")
		}
		if err != nil {
			return fmt.Errorf("the target: %w", err)
		}
	}
	if f.source != nil && f.source.Err() == nil {
		return nil
	}
	cfg := f.from
	cfg.OnEvent = f.changes.event
	zk, err := open(ctx, f.source, cfg)
	if f.source = zk; err != nil {
		return fmt.Errorf("the source: %w", err)
	}
	if _, err := zk.Sync(ctx, f.path); err != nil {
		return fmt.Errorf("the source: %w", err)
	}
	if at := zk.LastZxid(); at < f.highest {
		return fmt.Errorf("%w: the source is at zxid %v and was at %v before: another ensemble, or an older state of it", errFatal, at, f.highest)
	}
	return f.watch(ctx, zk, "source")
}

func open(ctx context.Context, old *client.Client, to endpoint) (*client.Client, error) {
	if old != nil {
		_ = old.Close() // the session has ended
	}
	return to.security.Connect(ctx, to.Config)
}

func (f *follower) disconnect() {
	for _, zk := range []*client.Client{f.source, f.target} {
		if zk != nil {
			_ = zk.Close() // otherwise the session expires
		}
	}
}

// watch sets the watch. A server that does not know it refuses or breaks the connection.
func (f *follower) watch(ctx context.Context, zk *client.Client, side string) (err error) {
	const tries = 3
	for range tries {
		err = zk.AddWatch(ctx, f.path, proto.AddWatchPersistentRecursive)
		if !errors.Is(err, proto.ErrConnectionLoss) {
			break
		}
	}
	if err == nil || ctx.Err() != nil || zk.Err() != nil {
		return err
	}
	f.line("comparing", "every %v: the %s does not report changes (%v)", f.interval, side, err)
	return nil
}

// admit refuses a target that would lose data, except with --overwrite.
func (f *follower) admit(ctx context.Context) error {
	if parent := proto.ParentPath(f.path); f.path != "/" {
		switch _, there, err := f.target.Exists(ctx, parent, false); {
		case err != nil:
			return fmt.Errorf("the target: %w", err)
		case !there:
			return fmt.Errorf("the target has no %s: create it first", parent)
		}
	}
	if f.overwrite {
		return nil
	}
	m := f.mirror()
	m.DryRun = true
	d, err := m.Run(ctx, nil)
	switch {
	case err != nil:
		return err
	case d.Lost() == 0:
		return nil
	}
	more := ""
	if d.Lost() > int64(len(d.Replaced)) {
		more = "\n..."
	}
	return fmt.Errorf("the target has other znodes at %s: %d that the source does not have, %d with other data, %d with another ACL:\n%s%s\n"+
		"Nothing was changed. If the addresses are right, --overwrite makes the target equal to the source and deletes those",
		f.path, d.Deleted, d.Data, d.ACLs, printable.Text(strings.Join(d.Replaced, " ")), more)
}

func (f *follower) mirror() *subtree.Mirror {
	return &subtree.Mirror{
		From:       subtree.Side{ZK: f.source, Path: f.path, Kinds: f.kinds, KindsAt: f.kindsAt},
		To:         subtree.Side{ZK: f.target, Path: f.path, Kinds: f.targetKinds, KindsAt: f.targetKindsAt},
		WithoutACL: f.withoutACL, Creations: f.creations, Renewed: f.renewed,
	}
}

// next waits for changes or the end of the interval, and compares.
func (f *follower) next(ctx context.Context) error {
	interval := time.NewTimer(time.Until(f.compared.Add(f.interval)))
	defer interval.Stop()
	select {
	case <-ctx.Done():
		return nil
	case <-f.source.Done():
		return fmt.Errorf("the source: %w", f.source.Err())
	case <-f.target.Done():
		return fmt.Errorf("the target: %w", f.target.Err())
	case <-f.changes.signal:
	case <-interval.C:
		f.changes.compareAll()
	}
	if t := f.changes.take(); t.whole || len(t.rels) > 0 {
		_, err := f.pass(ctx, t)
		return err
	}
	return nil
}

// pass compares, and copies the differences.
func (f *follower) pass(ctx context.Context, t todo) (d subtree.Mirrored, err error) {
	if t.whole || t.created {
		if err := f.askKinds(ctx); err != nil {
			return d, err
		}
	}
	m := f.mirror()
	begun := time.Now()
	for range conflicts {
		if d, err = m.Run(ctx, t.paths()); t.whole || !subtree.Conflict(err) {
			break
		}
	}
	f.highest = max(f.highest, f.source.LastZxid())
	if err != nil {
		return d, err
	}
	if !t.whole {
		f.followed += d.Created + d.Lost()
		if d.Later > 0 && !t.created {
			f.changes.compareAll()
		}
		return d, nil
	}
	f.compared = time.Now()
	f.line("compared", "in %v: %s; %d changes followed before", time.Since(begun).Round(time.Millisecond), describe(&d), f.followed)
	f.followed = 0
	return d, nil
}

// describe returns the result of a comparison of the whole subtrees.
func describe(d *subtree.Mirrored) string {
	text := fmt.Sprintf("%d znodes equal", d.Same)
	for _, c := range []struct {
		n    int64
		what string
	}{
		{d.Created, "created"}, {d.Data, "data set"}, {d.ACLs, "ACLs set"}, {d.Deleted, "deleted"},
		{d.Renewed, "with a TTL renewed"}, {d.Counters, "sequence counters moved"}, {d.Ephemerals, "ephemeral left out"}, {d.Later, "left to the next comparison"},
		{d.Kept, "kept above ephemerals of the target"}, {d.Behind, "sequence counters BEHIND: numbers repeat, see --counters"},
	} {
		if c.n > 0 {
			text += fmt.Sprintf(", %d %s", c.n, c.what)
		}
	}
	return text
}

// askKinds asks both sides which znodes are containers and which have a TTL.
func (f *follower) askKinds(ctx context.Context) error {
	if _, err := f.source.Sync(ctx, f.path); err != nil {
		return fmt.Errorf("the source: %w", err)
	}
	at := f.source.LastZxid()
	kinds, err := probe.Asker{Dial: f.from.Dial}.Kinds(ctx, f.source.Session().Server, f.from.Chroot)
	_, _ = f.target.Sync(ctx, f.path) // if it fails, the kinds are not compared
	f.targetKindsAt = f.target.LastZxid()
	f.targetKinds, _ = probe.Asker{Dial: f.to.Dial}.Kinds(ctx, f.target.Session().Server, f.to.Chroot)
	switch {
	case err == nil:
		if f.kinds, f.kindsAt = kinds, at; f.renewed == nil {
			f.renewed = map[string]proto.Zxid{}
		}
		maps.DeleteFunc(f.renewed, func(path string, _ proto.Zxid) bool { return kinds[path] == 0 })
	case f.kinds != nil:
		return fmt.Errorf("the kinds of znodes: %w", err)
	case !f.warned:
		f.warned = true
		why := "the source does not tell them apart"
		if errors.Is(err, probe.ErrNotAllowed) {
			why = "add kind to 4lw.commands.whitelist of the source, so that it tells them apart"
		}
		f.line("WARNING", "containers and TTL znodes are copied as persistent: %s", why)
	}
	return nil
}

// untilEqual copies until a comparison finds no difference.
func (f *follower) untilEqual(ctx context.Context) error {
	why := errors.New("stop the writers of the source and the target")
	for range maxPasses {
		d, err := f.pass(ctx, todo{whole: true})
		switch {
		case errors.Is(err, proto.ErrConnectionLoss):
			why = err
		case err != nil && !subtree.Conflict(err):
			return err
		case err == nil && d.Equal():
			f.line("equal", "%s: the data and ACLs of %d znodes", f.path, d.Same)
			return nil
		}
	}
	return fmt.Errorf("not equal after %d comparisons: %w", maxPasses, why)
}
