package archive

import (
	"context"
	"path"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive/store"
)

// object is an object with entries.
type object struct {
	logName
	name     string
	size     int64
	modified int64 // ms; 0: not known
}

// base is a checkpoint.
type base struct {
	baseName
	folder   string
	parts    []string // names, in order
	size     int64
	modified int64 // its last piece
	whole    bool  // all pieces are listed
}

// catalog holds the objects of an ensemble, as a listing shows them.
type catalog struct {
	ensemble  uint64
	now, past int64    // ms: when it was made, and of the newest batch until then
	logs      []object // by byName
	bases     []base   // by index
	fences    []string // names
	verified  *Verification
	strange   []string // names that mean nothing here
}

// readCatalog lists the objects of an ensemble whose names are greater than after.
func readCatalog(ctx context.Context, s store.Store, ensemble uint64, after string) (*catalog, error) {
	listed, err := s.List(ctx, folder(ensemble), after)
	return newCatalog(ensemble, listed), err
}

// newCatalog sorts the listed objects of an ensemble by kind.
func newCatalog(ensemble uint64, listed []store.Object) *catalog {
	c := &catalog{ensemble: ensemble, now: time.Now().UnixMilli()}
	for _, o := range listed {
		if strings.HasPrefix(o.Name, folder(ensemble)) {
			c.add(o)
		}
	}
	sort.Slice(c.logs, func(i, j int) bool { return byName(c.logs[i], c.logs[j]) < 0 })
	return c
}

// at returns when an object is from: its ms, or, while that is in the future, when it was modified.
// The clock of a leader may have jumped ahead, and all later batches have the time of the jump. A
// store's clock that is behind makes no object older than the batches before the jump.
func (c *catalog) at(ms, modified int64) time.Time {
	if ms > c.now && modified > 0 {
		ms = max(min(ms, modified), c.past)
	}
	return timeOf(ms)
}

// notePast keeps the newest time that is past.
func (c *catalog) notePast(ms int64) {
	if ms <= c.now {
		c.past = max(c.past, ms)
	}
}

func (c *catalog) add(o store.Object) {
	rest := strings.TrimPrefix(o.Name, folder(c.ensemble))
	kind, rest, _ := strings.Cut(rest, "/")
	switch kind {
	case "log":
		if n, ok := parseLogName(rest); ok {
			c.logs = append(c.logs, object{n, o.Name, o.Size, msOf(o.Modified)})
			c.notePast(n.ms)
			return
		}
	case "verified":
		if v, ok := parseVerification(rest); ok {
			c.verified = &v // the last one of the listing, which is in the order of their times
			return
		}
	case "promoted":
		ms, id, ok := strings.Cut(rest, "-")
		if _, err := strconv.ParseUint(ms, 10, 63); ok && err == nil && !strings.Contains(id, "-") {
			c.fences = append(c.fences, o.Name)
			return
		}
	case "base":
		dir, file := path.Split(rest)
		n, known := parseBaseName(strings.TrimSuffix(dir, "/"))
		part, last, ok := parsePart(file)
		if !known || !ok {
			break
		}
		folder := n.in(c.ensemble)
		if k := len(c.bases); k == 0 || c.bases[k-1].folder != folder {
			c.bases = append(c.bases, base{baseName: n, folder: folder})
		}
		b := &c.bases[len(c.bases)-1] // the listing is in the order of names
		b.whole = last && part == len(b.parts)
		c.notePast(n.ms)
		b.parts, b.size, b.modified = append(b.parts, o.Name), b.size+o.Size, msOf(o.Modified)
		return
	}
	c.strange = append(c.strange, o.Name)
}

// whole returns the complete bases, by index.
func (c *catalog) whole() (list []base) {
	for _, b := range c.bases {
		if b.whole {
			list = append(list, b)
		}
	}
	return list
}

// tail returns the position after the last entry of any history, and the object or base at its end.
func (c *catalog) tail() (p position, last *object, lastBase *base) {
	for i := range c.logs {
		if o := &c.logs[i]; o.last > p.index || o.last == p.index && o.ms > last.ms {
			p, last = o.after(), o
		}
	}
	for _, b := range c.whole() {
		if b.index > p.index {
			p, last, lastBase = b.position, nil, &b
		}
	}
	return p, last, lastBase
}

// reach returns every position that a chain of objects reaches from a position (A2, A4), each with
// the object that ends there, and the furthest. Of several objects, the one that makes the chain
// short is taken.
func (c *catalog) reach(from position) (reached map[position]*object, end position) {
	reached, end = map[position]*object{from: nil}, from
	for i := range c.logs {
		o := &c.logs[i]
		if _, ok := reached[o.before()]; !ok {
			continue
		}
		if _, again := reached[o.after()]; again {
			continue
		}
		reached[o.after()] = o
		if o.last > end.index {
			end = o.after()
		}
	}
	return reached, end
}

// path returns the longest chain of objects that begins at a position.
func (c *catalog) path(from position) (list []object) {
	reached, at := c.reach(from)
	for at != from {
		o := reached[at]
		list, at = append(list, *o), o.before()
	}
	slices.Reverse(list)
	return list
}

// endOf returns the last position of a path.
func endOf(from position, path []object) position {
	if len(path) == 0 {
		return from
	}
	return path[len(path)-1].after()
}
