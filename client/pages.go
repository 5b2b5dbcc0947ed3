package client

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// PageOptions select children, and the facts that are read of each.
type PageOptions struct {
	StartAfter string // only names after this one
	Prefix     string // only names that begin so
	Limit      int    // of a page; 0: as many as the server and Config.MaxBuffer allow
	Flags      proto.PageFlags
	Parent     *proto.Stat // if not nil, set to the Stat of the parent at each page
}

// Child is a child that ChildrenPages found. Stat and Data are set as far as the flags ask for
// them, unless Err says that the caller may not read the child.
type Child struct {
	Name string
	Stat proto.Stat
	Data []byte
	Err  error
}

// errOtherServer is the cause of a request meant for one connection and not sent on another.
var errOtherServer = errors.New("the client has another connection now")

// ChildrenPages lists children in the order of the bytes of their names. A name that exists during
// the whole iteration comes exactly once, any other name at most once. The iteration ends with the
// first error; it can be continued after the last name.
//
// Servers that have the operation listPage are asked for one page at a time, so that a list may be
// of any length. Others are asked for all names at once, and for each child that the flags ask for.
func (c *Client) ChildrenPages(ctx context.Context, path string, o PageOptions) iter.Seq2[Child, error] {
	return func(yield func(Child, error) bool) {
		p := pager{c, path, o}
		if o.Prefix > o.StartAfter {
			p.StartAfter, p.Flags = o.Prefix, o.Flags|proto.PageFrom
		}
		for {
			page, all, err := p.page(ctx)
			switch {
			case errors.Is(err, errOtherServer):
				continue
			case all:
				p.eachChild(ctx, yield)
				return
			case err != nil:
				yield(Child{}, err)
				return
			}
			if p.Parent != nil {
				*p.Parent = page.Parent
			}
			for _, e := range page.Entries {
				if !strings.HasPrefix(e.Name, o.Prefix) {
					return
				}
				child := Child{Name: e.Name, Stat: e.Stat, Data: e.Data}
				if e.Err != proto.OK {
					child.Err = e.Err
				}
				if !yield(child, nil) {
					return
				}
			}
			if page.Next == nil || *page.Next > o.Prefix && !strings.HasPrefix(*page.Next, o.Prefix) {
				return
			}
			if len(page.Entries) > 0 || *page.Next != p.StartAfter {
				p.StartAfter, p.Flags = *page.Next, p.Flags&^proto.PageFrom
			}
		}
	}
}

type pager struct {
	c    *Client
	path string
	PageOptions
}

// page asks for a page. all reports that the server has none.
func (p *pager) page(ctx context.Context) (page proto.ListPageResponse, all bool, err error) {
	l, f, err := p.features(ctx)
	if err != nil || f.Ops[proto.OpListPage.String()] != proto.OpListPage {
		return page, err == nil, err
	}
	r := proto.ListPageRequest{
		StartAfter: p.StartAfter, Limit: int32(min(p.Limit, proto.MaxPageEntries)), Flags: p.Flags,
		MaxBytes: int32(min(p.c.cfg.MaxBuffer, proto.MaxPageBytes)),
	}
	err = p.c.doPath(ctx, proto.OpListPage, p.path, func(full string) request {
		r.Path = full
		return request{body: r.Append, only: l}
	}, func(d *jute.Decoder) { page.Decode(d, p.Flags) })
	return page, false, err
}

func (p *pager) features(ctx context.Context) (*link, *proto.Features, error) {
	for c := p.c; ; {
		c.mu.Lock()
		l := c.link
		if l != nil && l.features != nil {
			f := l.features // another goroutine may set it again
			c.mu.Unlock()
			return l, f, nil
		}
		c.mu.Unlock()
		f := new(proto.Features)
		data, _, err := c.get(ctx, proto.FeaturesPath, proto.FeaturesPath, false)
		if err != nil && !errors.Is(err, proto.ErrNoNode) && !errors.Is(err, proto.ErrNoAuth) {
			return nil, nil, err
		}
		if err != nil || json.Unmarshal(data, f) != nil {
			f = new(proto.Features) // another server, or a client's znode
		}
		c.mu.Lock()
		if l != nil && l == c.link {
			l.features = f
		}
		c.mu.Unlock()
	}
}

// eachChild is ChildrenPages for a server without pages.
func (p *pager) eachChild(ctx context.Context, yield func(Child, error) bool) {
	names, stat, err := p.c.Children(ctx, p.path, false)
	if err != nil {
		yield(Child{}, err)
		return
	}
	if p.Parent != nil {
		*p.Parent = stat
	}
	slices.Sort(names)
	at, found := slices.BinarySearch(names, p.StartAfter)
	if found && p.Flags&proto.PageFrom == 0 {
		at++
	}
	filter := p.Flags & (proto.PageEphemeral | proto.PagePersistent)
	for _, name := range names[at:] {
		child := Child{Name: name}
		if !strings.HasPrefix(name, p.Prefix) {
			return
		}
		if p.Flags&^proto.PageFrom != 0 {
			child.Data, child.Stat, err = p.c.Get(ctx, strings.TrimSuffix(p.path, "/")+"/"+name, false)
			ephemeral := child.Stat.EphemeralOwner != 0
			switch {
			case errors.Is(err, proto.ErrNoNode), err != nil && filter != 0 && errors.Is(err, proto.ErrNoAuth),
				filter == proto.PageEphemeral && !ephemeral, filter == proto.PagePersistent && ephemeral:
				continue
			case errors.Is(err, proto.ErrNoAuth):
				child.Err = proto.ErrNoAuth
			case err != nil:
				yield(Child{}, err)
				return
			}
		}
		if !yield(child, nil) {
			return
		}
	}
}
