package subtree

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
)

// Existing says what a Loader does about znodes that are there already.
type Existing int

// The ways to treat what is there.
const (
	Refuse  Existing = iota // it is an error
	Keep                    // it stays as it is
	Replace                 // it gets data and ACL of the new one, not its kind
)

const (
	batchOps   = 500
	batchBytes = 256 << 10
	opBytes    = 64 // about what an op takes besides path, data and ACL
	resolves   = 5  // how often a batch is tried when others create and delete the same znodes
)

// Loader writes records as znodes, in multis of some hundred: parents come first, so each finds its parent. The fields are set
// before the first Add.
type Loader struct {
	ZK         *client.Client
	To         string // where the root of the records goes
	Existing   Existing
	Ephemerals bool // they become ephemerals of this session; else they are left out
	WithoutACL bool // all become world:anyone:cdrwa
	Seen       func(*Loader)

	Created, Changed, Kept, Skipped int64 // Skipped: ephemerals

	batch []pending
	bytes int
}

// pending is a znode that waits for its multi.
type pending struct {
	path    string
	data    []byte
	options client.CreateOptions
	replace bool
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

// Add writes a record, now or with later ones.
func (l *Loader) Add(ctx context.Context, r Record) error {
	p, ok, err := l.pending(r)
	if err != nil || !ok {
		return err
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

// pending returns what is to be written, or false if the record is left out.
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
		return pending{}, false, fmt.Errorf("%s: its ACL was not shown in full to who read it: read it again with a credential that may "+
			"change it (addauth), or write it without ACLs", r.Path)
	}
	p := pending{path: Join(l.To, r.rel()), data: r.data(), options: o}
	if p.path == "/" { // it is always there
		if l.Existing != Replace {
			l.Kept++
			return pending{}, false, nil
		}
		p.replace = true
	}
	return p, true, nil
}

// Flush writes what waits. On an error nothing of it was written, unless the error says that this is unknown.
func (l *Loader) Flush(ctx context.Context) error {
	lost := false
	for tries := 0; len(l.batch) > 0; tries++ {
		before := l.ZK.LastZxid()
		err := l.multi(ctx)
		switch {
		case err == nil:
			return l.written(ctx)
		case errors.Is(err, proto.ErrConnectionLoss) && tries < attempts:
			done, checkErr := l.carriedOut(ctx, before)
			if checkErr != nil {
				return errors.Join(err, checkErr)
			}
			if done {
				return l.written(ctx)
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

// written counts the batch and gives those that were replaced their ACLs, which no multi can do.
func (l *Loader) written(ctx context.Context) error {
	for i := range l.batch {
		p := &l.batch[i]
		if !p.replace {
			l.Created++
			continue
		}
		l.Changed++
		if l.WithoutACL {
			continue
		}
		acl := p.options.ACL
		if acl == nil {
			acl = proto.OpenACL()
		}
		err := retry(func() error { _, err := l.ZK.SetACL(ctx, p.path, acl, client.AnyVersion); return err })
		if err != nil && !errors.Is(err, proto.ErrNoNode) {
			return err
		}
	}
	l.batch, l.bytes = l.batch[:0], 0
	if l.Seen != nil {
		l.Seen(l)
	}
	return nil
}

// carriedOut reports whether the multi whose answer was lost has been carried out: all that a multi creates has the same zxid,
// and one that is newer than before. A batch that creates nothing may be sent again in any case.
func (l *Loader) carriedOut(ctx context.Context, before proto.Zxid) (bool, error) {
	if err := retry(func() error { _, err := l.ZK.Sync(ctx, "/"); return err }); err != nil {
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

// resolve asks what of the batch is there and treats it as Existing says.
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
		p.replace = there
		rest = append(rest, p)
	}
	l.batch = rest
	return nil
}

// stats returns the Stat of each znode of the batch, nil where there is none.
func (l *Loader) stats(ctx context.Context) ([]*proto.Stat, error) {
	stats := make([]*proto.Stat, len(l.batch))
	errs := make([]error, len(l.batch))
	var all sync.WaitGroup
	for i := range l.batch {
		all.Go(func() { // ends with its request; awaited below
			errs[i] = retry(func() error {
				stat, there, err := l.ZK.Exists(ctx, l.batch[i].path, false)
				if there {
					stats[i] = &stat
				}
				return err
			})
		})
	}
	all.Wait()
	return stats, errors.Join(slices.DeleteFunc(errs, func(err error) bool { return err == nil })...)
}
