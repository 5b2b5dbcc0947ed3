package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
)

var (
	stateBucket = []byte("state")
	metaBucket  = []byte("meta")
	metaKey     = []byte("meta")
)

type bucket struct {
	name   string
	root   uint64
	inline page // the only page of a small bucket, if root is 0
}

// topLevel reads the tree of buckets, which must hold the buckets meta and state and nothing else.
func (p *pageReader) topLevel() (found []bucket, err error) {
	err = p.walk(p.root, keyRange{}, 0, elementBucket, func(name, b []byte) (err error) {
		if len(b) < bucketHeader {
			return fmt.Errorf("bucket %q: %d bytes are too few", name, len(b))
		}
		is := bucket{name: string(name), root: word(b)}
		if is.root == 0 {
			if is.inline, err = inlinePage(bytes.Clone(b[bucketHeader:])); err != nil {
				return fmt.Errorf("bucket %q: %w", name, err)
			}
		}
		found = append(found, is)
		return nil
	})
	if err == nil && (len(found) != 2 || found[0].name != string(metaBucket) || found[1].name != string(stateBucket)) {
		err = errors.New("its buckets are not meta and state")
	}
	return found, err
}

// pairs calls visit for each pair of a bucket in order, until visit returns an error. The slices
// are valid during the call only.
func (p *pageReader) pairs(b bucket, visit func(key, value []byte) error) error {
	if b.root == 0 {
		return walkLeaf(b.inline, keyRange{}, elementPair, visit)
	}
	return p.walk(b.root, keyRange{}, 0, elementPair, visit)
}

// keyRange is the range of the keys that a page may hold: from low, and below high if not nil.
type keyRange struct{ low, high []byte }

// follows reports whether key is in the range and may follow the previous key; nil: there is none.
func (r keyRange) follows(previous, key []byte) bool {
	if r.high != nil && bytes.Compare(key, r.high) >= 0 {
		return false
	}
	if previous == nil {
		return bytes.Compare(r.low, key) <= 0
	}
	return bytes.Compare(previous, key) < 0
}

// walk visits all elements in a page and below it. Its leaves must hold elements of one kind.
func (p *pageReader) walk(id uint64, in keyRange, depth int, kind uint32, visit func(key, value []byte) error) error {
	g, err := p.claim(id, depth)
	switch {
	case err != nil:
		return err
	case depth > maxDepth:
		return fmt.Errorf("page %d: more than %d levels deep", id, maxDepth)
	case g.flags == flagLeaf:
		return walkLeaf(g, in, kind, visit)
	case g.flags != flagBranch || g.count == 0:
		return g.errKind("branch or leaf")
	}
	key, child, err := g.branch(0)
	if err == nil && !in.follows(nil, key) {
		err = fmt.Errorf("page %d: its first key is out of order", id)
	}
	for i := 1; err == nil && i <= g.count; i++ {
		next, sibling := in.high, uint64(0)
		if i < g.count {
			if next, sibling, err = g.branch(i); err == nil && !in.follows(key, next) {
				err = fmt.Errorf("page %d: key %d is out of order", id, i)
			}
		}
		if err == nil {
			err = p.walk(child, keyRange{key, next}, depth+1, kind, visit)
		}
		key, child = next, sibling
	}
	return err
}

func walkLeaf(g page, in keyRange, kind uint32, visit func(key, value []byte) error) error {
	var previous []byte
	for i := range g.count {
		flags, key, value, err := g.leaf(i)
		switch {
		case err != nil:
			return err
		case flags != kind:
			return fmt.Errorf("page %d, element %d: flags %#x, want %#x", g.id, i, flags, kind)
		case !in.follows(previous, key):
			return fmt.Errorf("page %d: key %d is out of order", g.id, i)
		}
		if err := visit(key, value); err != nil {
			return err
		}
		previous = key
	}
	return nil
}
