package subtree

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
)

// All is the value of Options.Below for the whole subtree.
const All = -1

const (
	window    = 64       // znodes to read ahead
	maxHeld   = 4 * 64   // bound on znodes in the list, including children of znodes read ahead
	maxBytes  = 16 << 20 // bound on data read ahead; above it only the next znode is read
	nodeBytes = 256      // approximate size of a znode without its data
	attempts  = 10       // attempts for a read when connections break
)

// Options select the parts of znodes that a walk reads.
type Options struct {
	Data, ACL bool // read the data, read the ACLs
	Below     int  // number of levels below the root, or All
	NoSystem  bool // skip /zookeeper if the root is /
	Kinds     Kinds
}

// Znode is a znode found by a walk. The visitor owns it.
type Znode struct {
	Path  string
	Rel   string // path below the root of the walk, such as "/a/b"; "" is the root
	Depth int    // 0 is the root
	Last  bool   // last child of its parent
	Stat  proto.Stat
	Data  []byte // nil is null
	ACL   []proto.ACL
	// Container and TTLMs are set as far as Options.Kinds knows them.
	Container bool
	TTLMs     int64
	// Denied: the client may not read the znode or its ACL. Then znodes below are not visited.
	Denied error
}

// Walk calls visit with root and all znodes below it: parents before children, siblings by name. It
// returns the first error of visit. If root does not exist, Walk fails; other znodes that do not
// exist any more are skipped.
func Walk(ctx context.Context, zk *client.Client, root string, o Options, visit func(*Znode) error) error {
	ctx, cancel := context.WithCancel(ctx)
	w := &walker{ctx: ctx, zk: zk, options: o, results: make(chan *item, maxHeld+1)}
	defer w.fetches.Wait()
	defer cancel()
	w.head = &item{node: Znode{Path: root, Last: true}}
	w.start(w.head)
	for w.head != nil {
		w.readAhead()
		for !w.head.done {
			w.complete(<-w.results)
			w.readAhead()
		}
		it := w.head
		w.head, it.next = it.next, nil // a retained Znode must not retain the rest of the list
		w.held--
		w.bytes -= it.size()
		if it.err != nil && !(errors.Is(it.err, proto.ErrNoNode) && it.node.Depth > 0) {
			return it.err
		}
		if it.err == nil {
			o.Kinds.note(&it.node)
			if err := visit(&it.node); err != nil {
				return err
			}
		}
	}
	return nil
}

// walker keeps a list of the znodes to visit, in order: znodes that were read or are being read,
// followed by the names of their children that are not being read yet.
type walker struct {
	ctx     context.Context //nolint:containedctx // of one Walk
	zk      *client.Client
	options Options
	head    *item
	results chan *item // capacity maxHeld+1, so that a fetch never blocks
	fetches sync.WaitGroup
	held    int // znodes in the list
	bytes   int // size of the items that were read
}

// item is a znode of the list or, if names is not nil, several unread siblings.
type item struct {
	next  *item
	names []string // sorted
	node  Znode    // the parent, if names is not nil
	kids  []string
	done  bool
	err   error
}

func (it *item) size() int { return nodeBytes + len(it.node.Data) }

// readAhead starts to read the znodes near the head of the list. The head is always read.
func (w *walker) readAhead() {
	prev := &w.head
	for n := 0; n < window && *prev != nil; n++ {
		it := *prev
		if it.names != nil {
			if n > 0 && (w.held >= maxHeld || w.bytes >= maxBytes) {
				return
			}
			it = it.takeFirst()
			*prev = it
			w.start(it)
		}
		prev = &it.next
	}
}

// takeFirst splits the first sibling off and returns it, linked before the rest.
func (it *item) takeFirst() *item {
	name := it.names[0]
	first := &item{next: it, node: Znode{
		Path: Join(it.node.Path, name), Rel: it.node.Rel + "/" + name, Depth: it.node.Depth + 1, Last: len(it.names) == 1,
	}}
	if it.names = it.names[1:]; len(it.names) == 0 {
		first.next = it.next
	}
	return first
}

func (w *walker) start(it *item) {
	w.held++
	w.fetches.Go(func() { // ends with its requests; Walk waits for it
		it.err = w.fetch(&it.node, &it.kids)
		w.results <- it
	})
}

// complete marks a znode as read and inserts its children after it.
func (w *walker) complete(it *item) {
	it.done = true
	w.bytes += it.size()
	if w.options.NoSystem && it.node.Path == "/" {
		it.kids = slices.DeleteFunc(it.kids, func(name string) bool { return name == "zookeeper" })
	}
	if len(it.kids) > 0 {
		it.next = &item{next: it.next, names: it.kids, node: Znode{Path: it.node.Path, Rel: it.node.Rel, Depth: it.node.Depth}}
		it.kids = nil
	}
}

func (w *walker) fetch(n *Znode, kids *[]string) error {
	err := w.fetchAll(n, kids)
	if errors.Is(err, proto.ErrNoAuth) && n.Depth > 0 {
		n.Denied, n.Data, n.ACL, *kids = err, nil, nil, nil
		return nil
	}
	return err
}

func (w *walker) fetchAll(n *Znode, kids *[]string) error {
	return retry(func() (err error) {
		below := w.options.Below < 0 || n.Depth < w.options.Below
		*kids = nil
		if w.options.Data {
			if n.Data, n.Stat, err = w.zk.Get(w.ctx, n.Path, false); err != nil {
				return err
			}
			below = below && n.Stat.NumChildren > 0
		}
		switch {
		case below:
			// With data, the Stat belongs to the data.
			var stat proto.Stat
			if *kids, stat, err = Names(w.ctx, w.zk, n.Path); err == nil && !w.options.Data {
				n.Stat = stat
			}
		case !w.options.Data:
			var there bool
			if n.Stat, there, err = w.zk.Exists(w.ctx, n.Path, false); err == nil && !there {
				err = &client.Error{Op: proto.OpExists.String(), Path: n.Path, Code: proto.ErrNoNode}
			}
		}
		if err == nil && w.options.ACL {
			n.ACL, _, err = w.zk.GetACL(w.ctx, n.Path)
		}
		return err
	})
}

// Names returns the sorted names of a znode's children, however many there are, and its Stat.
func Names(ctx context.Context, zk *client.Client, path string) (names []string, stat proto.Stat, err error) {
	for child, err := range zk.ChildrenPages(ctx, path, client.PageOptions{Parent: &stat}) {
		if err != nil {
			return nil, stat, err
		}
		names = append(names, child.Name)
	}
	return names, stat, nil
}

// retry repeats a read while the connection breaks. Reads are safe to repeat.
func retry(f func() error) (err error) {
	for range attempts {
		if err = f(); !errors.Is(err, proto.ErrConnectionLoss) {
			break
		}
	}
	return err
}

// Join returns the path of a child, or of a znode whose path below parent begins with a slash.
func Join(parent, name string) string {
	if name = strings.TrimPrefix(name, "/"); name == "" {
		return parent
	}
	return strings.TrimSuffix(parent, "/") + "/" + name
}
