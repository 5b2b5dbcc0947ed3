package cache

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/gozkd/gozkd/internal/wakeup"
)

// view is the content of a cache. Written only by the loop. Safe for concurrent use.
type view struct {
	mu        sync.RWMutex
	znodes    map[string]map[string]*Znode // by the parent's path, then by name
	complete  bool
	refused   error // why the root cannot be read
	ended     error
	changed   wakeup.Broadcast // sent when complete, refused or ended change
	listeners map[*listener]struct{}
}

// at must be called with mu held.
func (v *view) at(path string) *Znode {
	parent, name := split(path)
	return v.znodes[parent][name]
}

// all returns all znodes, sorted by path. mu must be held.
func (v *view) all() []*Znode {
	var all []*Znode
	for _, children := range v.znodes {
		all = slices.AppendSeq(all, maps.Values(children))
	}
	return sorted(all)
}

func sorted(znodes []*Znode) []*Znode {
	slices.SortFunc(znodes, func(a, b *Znode) int { return cmp.Compare(a.Path, b.Path) })
	return znodes
}

// set replaces the znode at path, or removes the znode if z is nil.
func (v *view) set(path string, z *Znode) {
	parent, name := split(path)
	v.mu.Lock()
	defer v.mu.Unlock()
	children := v.znodes[parent]
	switch {
	case z == nil && children[name] == nil:
		return
	case z == nil:
		if delete(children, name); len(children) == 0 {
			delete(v.znodes, parent)
		}
	case children == nil:
		v.znodes[parent] = map[string]*Znode{name: z}
	default:
		children[name] = z
	}
	for l := range v.listeners {
		v.note(l, path)
	}
}

func (v *view) setComplete(complete bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.complete == complete {
		return
	}
	v.complete = complete
	v.changed.Send()
	for l := range v.listeners {
		l.noteComplete(complete)
	}
}

func (v *view) setRefused(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.refused == nil && err == nil {
		return
	}
	v.refused = err
	v.changed.Send()
}

// end makes wait return err from now on.
func (v *view) end(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ended, v.complete = err, false
	v.changed.Send()
}

func (v *view) wait(ctx context.Context) error {
	for {
		v.mu.Lock()
		complete, err, changed := v.complete, cmp.Or(v.ended, v.refused), v.changed.Next()
		v.mu.Unlock()
		switch {
		case complete:
			return nil
		case err != nil:
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
