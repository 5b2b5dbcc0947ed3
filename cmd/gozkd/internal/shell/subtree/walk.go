package subtree

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
)

// All as Options.Below is the whole subtree.
const All = -1

const (
	window    = 64       // how many znodes a walk reads ahead
	maxHeld   = 4 * 64   // the same with the children of those that were read ahead
	maxBytes  = 16 << 20 // of data read ahead: then only what is needed next is read
	nodeBytes = 256      // about what a znode takes without its data
	attempts  = 10       // of a read when connections break
)

// Options say what a walk reads.
type Options struct {
	Data, ACL bool // else Znode.Data, Znode.ACL are nil
	Below     int  // how many levels below the root; All is All
	NoSystem  bool // leave out /zookeeper when the root is /
	Kinds     Kinds
}

// Node is a znode as a walk found it. It belongs to who is handed it.
type Znode struct {
	Path  string
	Rel   string // the path below the walk's root, "/a/b"; "" is the root itself
	Depth int    // 0 is the root
	Last  bool   // the last of its parent's children
	Stat  proto.Stat
	Data  []byte // nil is null
	ACL   []proto.ACL
	// Container and TTLMs are as far as Options.Kinds says.
	Container bool
	TTLMs     int64
	// Denied is the error of a znode that may not be read, or whose ACL may not: then nothing below it is known either.
	Denied error
}

// Walk calls visit with root and all below it, parents before their children and children by name. It stops at the first error
// of visit and returns it. A root that is not there is an error, another znode that vanished is not.
func Walk(ctx context.Context, zk *client.Client, root string, o Options, visit func(*Znode) error) error {
	ctx, cancel := context.WithCancel(ctx)
	w := &walker{ctx: ctx, zk: zk, root: root, options: o, results: make(chan *item, maxHeld+1)}
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
		w.head, it.next = it.next, nil // who keeps the node must not keep all that came behind it
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

// walker keeps a list of what comes next, in order: znodes that are read or being read, and behind a znode the names of its
// children that are not yet.
type walker struct {
	ctx     context.Context //nolint:containedctx // of one Walk
	zk      *client.Client
	root    string
	options Options
	head    *item
	results chan *item // capacity: what may be held, so that no fetch waits
	fetches sync.WaitGroup
	held    int // znodes in the list
	bytes   int // what the finished ones of them take
}

// item is one znode of the list or, if names is not nil, several with one parent.
type item struct {
	next  *item
	names []string // sorted
	node  Znode    // or, with names, the parent
	kids  []string
	done  bool
	err   error
}

func (it *item) size() int { return nodeBytes + len(it.node.Data) }

// readAhead starts reading what is near the head of the list. What stands there is read in any case.
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

// takeFirst returns the first of several, linked before the rest.
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

// complete notes that a znode was read: its children come behind it.
func (w *walker) complete(it *item) {
	it.done = true
	w.bytes += it.size()
	if w.options.NoSystem && it.node.Path == "/" {
		it.kids = slices.DeleteFunc(it.kids, func(name string) bool { return name == "zookeeper" })
	}
	if len(it.kids) > 0 {
		slices.Sort(it.kids)
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
	below := w.options.Below < 0 || n.Depth < w.options.Below
	return retry(func() (err error) {
		if w.options.Data {
			if n.Data, n.Stat, err = w.zk.Get(w.ctx, n.Path, false); err != nil {
				return err
			}
			below = below && n.Stat.NumChildren > 0
		}
		switch {
		case below:
			// The Stat is that of the data, if there is any.
			var stat proto.Stat
			if *kids, stat, err = w.zk.Children(w.ctx, n.Path, false); err == nil && !w.options.Data {
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

// retry repeats reads, which do no harm, when the connection broke.
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
	if len(name) > 0 && name[0] == '/' {
		name = name[1:]
	}
	switch {
	case name == "":
		return parent
	case parent == "/":
		return "/" + name
	default:
		return parent + "/" + name
	}
}
