package subtree

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/gozkd/gozkd/client"
)

// Existing selects how a Loader treats existing znodes.
type Existing int

// Treatments of existing znodes.
const (
	Refuse  Existing = iota // fail
	Keep                    // leave them unchanged
	Replace                 // set data and ACL; the kind stays
)

// Loader creates the znodes of records in batches, parents first. Set its fields before any Add.
type Loader struct {
	ZK         *client.Client
	To         string // path for the root of the records
	Existing   Existing
	Ephemerals bool // create ephemeral znodes of this session; otherwise skip them
	WithoutACL bool // every ACL becomes world:anyone:cdrwa
	Counters   Counters
	Seen       func(*Loader)

	Created, Changed, Kept, Skipped int64 // Skipped: ephemeral znodes

	out     writer
	lineage // of the last record; the field by of its znodes is the wanted number of creations
}

// Load adds all records of an export.
func (l *Loader) Load(ctx context.Context, in io.Reader) error {
	r, err := NewReader(in)
	if err != nil {
		return err
	}
	for {
		record, err := r.Next()
		if errors.Is(err, io.EOF) {
			return l.Finish(ctx)
		}
		if err != nil {
			return err
		}
		if err := l.Add(ctx, record); err != nil {
			return err
		}
	}
}

// Add adds a record to the batch and writes the batch if it is full.
func (l *Loader) Add(ctx context.Context, r Record) error {
	if l.out.zk == nil {
		l.out = writer{
			zk: l.ZK, repeat: true, existing: l.Existing, withACLs: !l.WithoutACL, kept: &l.Kept,
			counters: &l.Counters, wrote: l.written,
		}
		l.finish = func(o open) error {
			if o.lacks() > 0 {
				l.out.behind = append(l.out.behind, Counter{Path: Join(l.To, o.rel), By: o.by})
			}
			return nil
		}
	}
	s, ok, err := l.step(r)
	if err != nil {
		return err
	}
	rel := r.rel()
	_ = l.leave(&rel) // finish never fails
	if ok {
		l.child(rel)
	}
	if ok || Join(l.To, rel) == "/" {
		l.open = append(l.open, open{rel: rel, by: r.Creations, empty: r.Kind == Container})
	}
	if !ok {
		return nil
	}
	return l.out.add(ctx, s)
}

// Finish writes the rest after the last Add.
func (l *Loader) Finish(ctx context.Context) error {
	_ = l.leave(nil) // finish never fails
	return l.out.end(ctx)
}

// step returns the step of a record. ok is false if the record is skipped.
func (l *Loader) step(r Record) (_ step, ok bool, err error) {
	o, err := r.options()
	if err != nil {
		return step{}, false, fmt.Errorf("%s: %w", r.Path, err)
	}
	if o.Ephemeral && !l.Ephemerals {
		l.Skipped++
		return step{}, false, nil
	}
	if l.WithoutACL {
		o.ACL = nil
	} else if Masked(o.ACL) {
		return step{}, false, fmt.Errorf("%s: the export does not contain its full ACL: export again with a credential that may "+
			"change the ACL (addauth), or import without ACLs", r.Path)
	}
	s := step{kind: Create, path: Join(l.To, r.rel()), data: r.data(), options: o, version: client.AnyVersion}
	if s.path == "/" { // always exists
		if l.Existing != Replace {
			l.Kept++
			return step{}, false, nil
		}
		s.kind = SetData
	}
	return s, true, nil
}

func (l *Loader) written() {
	l.Created, l.Changed = l.out.done[Create], l.out.done[SetData]
	if l.Seen != nil {
		l.Seen(l)
	}
}
