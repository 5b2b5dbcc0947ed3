package subtree

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
)

// Existing selects how a Loader treats existing znodes.
type Existing int

// Treatments of existing znodes.
const (
	Refuse  Existing = iota // fail
	Keep                    // leave them unchanged
	Replace                 // set data and ACL; the kind stays
)

const (
	batchOps   = 500
	batchBytes = 256 << 10
	opBytes    = 64 // approximate size of an op without path, data and ACL
	resolves   = 5  // attempts for a batch while others create and delete the same znodes
)

// Loader creates the znodes of records in batches. Parents come before children. The fields must be
// set before the first Add.
type Loader struct {
	ZK         *client.Client
	To         string // path for the root of the records
	Existing   Existing
	Ephemerals bool // create ephemeral znodes of this session; otherwise skip them
	WithoutACL bool // every ACL becomes world:anyone:cdrwa
	Counters   Counters
	Seen       func(*Loader)

	Created, Changed, Kept, Skipped int64 // Skipped: ephemeral znodes

	batch []pending
	bytes int

	parents []parentCounter // from the root to the last record
	behind  []Counter       // By is the wanted number of creations
}

// pending is a znode in the next multi.
type pending struct {
	path    string
	data    []byte
	options client.CreateOptions
	replace bool
	aclSet  bool // of the znode that is replaced
}

func (p *pending) op() client.Op {
	if p.replace {
		return client.SetOp(p.path, p.data, client.AnyVersion)
	}
	return client.CreateOp(p.path, p.data, p.options)
}

func (p *pending) size() int {
	n := opBytes + len(p.path) + len(p.data)
	for _, a := range p.options.ACL {
		n += 12 + len(a.ID.Scheme) + len(a.ID.ID)
	}
	return n
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
	p, ok, err := l.pending(r)
	if err != nil {
		return err
	}
	l.count(&r, Join(l.To, r.rel()), ok)
	if len(l.behind) >= batchOps {
		if err := l.moveCounters(ctx); err != nil {
			return err
		}
	}
	if !ok {
		return nil
	}
	if len(l.batch) > 0 && (len(l.batch) == batchOps || l.bytes+p.size() > batchBytes) {
		if err := l.Flush(ctx); err != nil {
			return err
		}
	}
	l.batch = append(l.batch, p)
	l.bytes += p.size()
	return nil
}

// pending returns the znode of a record. ok is false if the record is skipped.
func (l *Loader) pending(r Record) (pending, bool, error) {
	o, err := r.options()
	if err != nil {
		return pending{}, false, fmt.Errorf("%s: %w", r.Path, err)
	}
	if o.Ephemeral && !l.Ephemerals {
		l.Skipped++
		return pending{}, false, nil
	}
	if l.WithoutACL {
		o.ACL = nil
	} else if Masked(o.ACL) {
		return pending{}, false, fmt.Errorf("%s: the export does not contain its full ACL: export again with a credential that may "+
			"change the ACL (addauth), or import without ACLs", r.Path)
	}
	p := pending{path: Join(l.To, r.rel()), data: r.data(), options: o}
	if p.path == "/" { // always exists
		if l.Existing != Replace {
			l.Kept++
			return pending{}, false, nil
		}
		p.replace = true
	}
	return p, true, nil
}

// Flush writes the batch. After an error nothing of the batch was written, except ACLs of replaced
// znodes, unless the error says that this is unknown.
func (l *Loader) Flush(ctx context.Context) error {
	lost := false
	for tries := 0; len(l.batch) > 0; tries++ {
		if err := l.setACLs(ctx); err != nil {
			return err
		}
		before := l.ZK.LastZxid()
		err := l.multi(ctx)
		switch {
		case err == nil:
			l.written()
			return nil
		case errors.Is(err, proto.ErrConnectionLoss) && tries < attempts:
			done, checkErr := l.carriedOut(ctx, before)
			if checkErr != nil {
				return errors.Join(err, checkErr)
			}
			if done {
				l.written()
				return nil
			}
			lost = true
		case (errors.Is(err, proto.ErrNodeExists) || errors.Is(err, proto.ErrNoNode) && l.Existing == Replace) &&
			l.Existing != Refuse && tries < resolves:
			if err := l.resolve(ctx); err != nil {
				return err
			}
		default:
			if lost {
				err = fmt.Errorf("after a connection was lost: %w", err)
			}
			return err
		}
	}
	return nil
}

func (l *Loader) multi(ctx context.Context) error {
	ops := make([]client.Op, len(l.batch))
	for i := range l.batch {
		ops[i] = l.batch[i].op()
	}
	_, err := l.ZK.Multi(ctx, ops...)
	return err
}

// setACLs sets the ACLs of the znodes that the batch replaces, which a multi cannot do. ACLs come
// before data, so that new data is never visible to more clients than wanted.
func (l *Loader) setACLs(ctx context.Context) error {
	if l.WithoutACL {
		return nil
	}
	for i := range l.batch {
		p := &l.batch[i]
		if !p.replace || p.aclSet {
			continue
		}
		acl := p.options.ACL
		if acl == nil {
			acl = proto.OpenACL()
		}
		err := retry(func() error { _, err := l.ZK.SetACL(ctx, p.path, acl, client.AnyVersion); return err })
		if err != nil && !errors.Is(err, proto.ErrNoNode) { // if the znode is gone, the multi fails
			return err
		}
		p.aclSet = err == nil
	}
	return nil
}

// written counts the batch.
func (l *Loader) written() {
	for i := range l.batch {
		if l.batch[i].replace {
			l.Changed++
		} else {
			l.Created++
		}
	}
	l.batch, l.bytes = l.batch[:0], 0
	if l.Seen != nil {
		l.Seen(l)
	}
}

// carriedOut reports whether a multi whose reply was lost was applied: all znodes that it creates
// have the same zxid, which is newer than before. A batch that creates nothing can be repeated.
func (l *Loader) carriedOut(ctx context.Context, before proto.Zxid) (bool, error) {
	if _, err := (Side{ZK: l.ZK, Path: "/"}).latest(ctx); err != nil {
		return false, err
	}
	stats, err := l.stats(ctx)
	if err != nil {
		return false, err
	}
	var zxid proto.Zxid
	for i, stat := range stats {
		if l.batch[i].replace {
			continue
		}
		if stat == nil || stat.Czxid <= before || zxid != 0 && stat.Czxid != zxid {
			return false, nil
		}
		zxid = stat.Czxid
	}
	return zxid != 0, nil
}

// resolve finds out which znodes of the batch exist and treats them as Existing says.
func (l *Loader) resolve(ctx context.Context) error {
	stats, err := l.stats(ctx)
	if err != nil {
		return err
	}
	var rest []pending
	for i := range l.batch {
		p := l.batch[i]
		there := stats[i] != nil
		if there && l.Existing == Keep {
			l.Kept++
			l.bytes -= p.size()
			continue
		}
		p.replace, p.aclSet = there, false
		rest = append(rest, p)
	}
	l.batch = rest
	return nil
}

// stats returns the Stat of each znode of the batch, nil for a znode that does not exist.
func (l *Loader) stats(ctx context.Context) ([]*proto.Stat, error) {
	stats := make([]*proto.Stat, len(l.batch))
	return stats, Each(len(stats), func(i int) error {
		return retry(func() error {
			stat, there, err := l.ZK.Exists(ctx, l.batch[i].path, false)
			if there {
				stats[i] = &stat
			}
			return err
		})
	})
}
