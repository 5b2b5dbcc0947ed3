package restv2

import (
	"context"
	"slices"
	"sync"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
)

// The bounds of the lists that are kept.
const (
	maxLists     = 4
	maxListBytes = 16 << 20 // of names, of a list
)

// lists keeps the sorted names of long lists of children, so that a caller that reads page after
// page does not cost a transfer and a sort of the whole list each time.
type lists struct {
	mu   sync.Mutex // guards kept
	kept []list     // the last used at the end
}

type list struct {
	path  string
	stat  proto.Stat
	names []string // sorted; never changed
}

// same reports whether no child was created or deleted between two Stats of a path.
func same(a, b *proto.Stat) bool {
	return a.Czxid == b.Czxid && a.Pzxid == b.Pzxid && a.Cversion == b.Cversion
}

// of returns the sorted names of a znode's children, which must not be changed, and its Stat. later
// says that the caller has read a page already.
func (l *lists) of(ctx context.Context, cl *client.Client, path string, later bool) ([]string, proto.Stat, error) {
	if later {
		// Exists demands the permission that Children demands.
		stat, ok, err := cl.Exists(ctx, path, false)
		if err != nil {
			return nil, stat, err
		}
		if names := l.get(path, &stat); ok && names != nil {
			return names, stat, nil
		}
	}
	names, stat, err := cl.Children(ctx, path, false)
	if err != nil {
		return nil, stat, err
	}
	slices.Sort(names)
	l.put(list{path, stat, names})
	return names, stat, nil
}

func (l *lists) get(path string, stat *proto.Stat) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, k := range l.kept {
		if k.path == path && same(&k.stat, stat) {
			l.kept = append(slices.Delete(l.kept, i, i+1), k)
			return k.names
		}
	}
	return nil
}

func (l *lists) put(k list) {
	size := 0
	for _, name := range k.names {
		size += len(name) + 16
	}
	if len(k.names) <= maxPage || size > maxListBytes {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept = slices.DeleteFunc(l.kept, func(old list) bool { return old.path == k.path })
	if l.kept = append(l.kept, k); len(l.kept) > maxLists {
		l.kept = slices.Delete(l.kept, 0, 1)
	}
}
