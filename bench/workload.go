//go:build linux

package main

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/proto"
)

const (
	dataBytes = 100
	largeData = 1 << 10
	nData     = 1000 // znodes that rows read and set
	nChildren = 1000 // children of the znode in getChildren of 1000
	fewListed = 10   // children of the znode in getChildren of 10
	multiOps  = 10

	rootPath     = "/bench"
	dataParent   = rootPath + "/data"
	listedParent = rootPath + "/children"
	fewParent    = rootPath + "/few"
	madeParent   = rootPath + "/made" // madeParents znodes per connection: parents of the znodes that the connection creates
	maxLoad      = 128                // connections that may create
	madeParents  = 16                 // a fast server creates too many children in a row's rounds for a single parent's list
)

var (
	dataPaths = paths(dataParent, nData)
	payload   = letters(dataBytes)
	large     = letters(largeData)
)

func letters(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = 'a' + byte(i%26)
	}
	return b
}

func paths(parent string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("%s/n%04d", parent, i)
	}
	return list
}

// workload is the sequence of requests of a row.
type workload struct {
	name       string
	replyBytes int // of each reply without its length; 0: varies
	// next appends a request to c's output, or returns false if c has no more.
	next func(c *client) bool
	// undo, if any, removes the znodes that next created. after, if any, restores the znodes that
	// next changed, on the members at the addresses.
	undo  *workload
	after func(addrs []string)
}

func replyLen(n int) int { return proto.ReplyHeaderBytes + n }

// workloads returns the rows of the throughput table.
func workloads() []*workload {
	return workloadsOver(func(c *client) string { return dataPaths[c.next(nData)] })
}

// workloadsOver returns the rows of the throughput table with other keys: key draws a path.
func workloadsOver(key func(c *client) string) []*workload {
	get := func(c *client) bool {
		c.request(proto.OpGetData, (&proto.PathWatchRequest{Path: key(c)}).Append)
		return true
	}
	set := func(data []byte) func(*client) bool {
		return func(c *client) bool {
			appendSet(c, key(c), data)
			return true
		}
	}
	list := func(path string) func(*client) bool {
		return func(c *client) bool {
			c.request(proto.OpGetChildren, (&proto.PathWatchRequest{Path: path}).Append)
			return true
		}
	}
	setSmall := set(payload)
	mixed := func(sets int) func(*client) bool { // this many of ten requests are sets, the others are gets
		return func(c *client) bool {
			if c.next(10) < sets {
				return setSmall(c)
			}
			return get(c)
		}
	}
	nameBytes := 4 + len("n0000")
	return []*workload{
		{name: "get 100 B", replyBytes: replyLen(4 + dataBytes + proto.StatBytes), next: get},
		{name: "exists", replyBytes: replyLen(proto.StatBytes), next: func(c *client) bool {
			c.request(proto.OpExists, (&proto.PathWatchRequest{Path: key(c)}).Append)
			return true
		}},
		{name: fmt.Sprintf("getChildren of %d", fewListed), replyBytes: replyLen(4 + fewListed*nameBytes), next: list(fewParent)},
		{name: fmt.Sprintf("getChildren of %d", nChildren), replyBytes: replyLen(4 + nChildren*nameBytes), next: list(listedParent)},
		{name: "set 100 B", replyBytes: replyLen(proto.StatBytes), next: setSmall},
		{name: "set 1 KiB", replyBytes: replyLen(proto.StatBytes), next: set(large), after: small},
		{name: "create 100 B", next: create, undo: &workload{name: "delete", next: remove}},
		{name: "create and delete", next: func(c *client) bool {
			if c.made == 0 {
				return create(c)
			}
			return remove(c)
		}, undo: &workload{name: "delete", next: remove}},
		{name: fmt.Sprintf("multi of %d sets", multiOps), next: func(c *client) bool {
			var ops [multiOps]proto.MultiOp
			for i := range ops {
				ops[i] = proto.MultiOp{Op: proto.OpSetData, Path: key(c), Data: payload, Version: -1}
			}
			r := proto.MultiRequest{Ops: ops[:]}
			start := c.begin(proto.OpMulti)
			c.out = r.Append(c.out)
			endFrame(c.out, start)
			return true
		}},
		{name: "sync", next: func(c *client) bool {
			path := dataPaths[0]
			c.request(proto.OpSync, (&proto.PathRequest{Path: &path}).Append)
			return true
		}},
		{name: "mixed: 90% get, 10% set", next: mixed(1)},
		{name: "mixed: 50% get, 50% set", next: mixed(5)},
	}
}

// workloadNamed returns the row with a name, which must exist.
func workloadNamed(name string) *workload { return named(workloads(), name) }

func named(all []*workload, name string) *workload {
	for _, w := range all {
		if w.name == name {
			return w
		}
	}
	panic("bench: no row " + name)
}

func setRequest(c *client) *proto.SetDataRequest {
	return &proto.SetDataRequest{Path: dataPaths[c.next(nData)], Data: payload, Version: -1}
}

// small gives the znodes of the rows their 100 bytes back.
func small(addrs []string) {
	i := 0
	runOnce(target{addrs: addrs[:1]}, shape{1, 64}, &workload{name: "set back", next: func(c *client) bool {
		if i == nData {
			return false
		}
		appendSet(c, dataPaths[i], payload)
		i++
		return true
	}}, 0)
	syncAll(addrs)
}

func create(c *client) bool {
	appendCreate(c, madePath(c.index, c.made), payload)
	c.made++
	return true
}

func remove(c *client) bool {
	if c.made == 0 {
		return false
	}
	c.made--
	c.request(proto.OpDelete, (&proto.PathVersionRequest{Path: madePath(c.index, c.made), Version: -1}).Append)
	return true
}

// madePath returns the path of the n-th znode that a client creates, of up to a hundred million,
// without package fmt, which costs too much here.
func madePath(client, n int) string {
	var room [64]byte
	b := append(room[:0], madeParent...)
	b = append(b, '/')
	b = strconv.AppendInt(b, int64(client+n%madeParents*maxLoad), 10)
	b = append(b, "/n00000000"...)
	digits(b[len(b)-8:], n)
	return string(b)
}

func appendSet(c *client, path string, data []byte) {
	r := proto.SetDataRequest{Path: path, Data: data, Version: -1}
	start := c.begin(proto.OpSetData)
	c.out = r.Append(c.out)
	endFrame(c.out, start)
}

func appendCreate(c *client, path string, data []byte) {
	r := proto.CreateRequest{Path: path, Data: data, ACL: openACL}
	start := c.begin(proto.OpCreate)
	c.out = r.Append(c.out, proto.OpCreate)
	endFrame(c.out, start)
}

var openACL = proto.OpenACL()

// creates returns a workload that creates n znodes once, spread over the clients in order; path(i)
// is the path of the i-th znode.
func creates(nClients, n int, data []byte, path func(i int) string) *workload {
	return &workload{name: "create", next: func(c *client) bool {
		i := c.made*nClients + c.index
		if i >= n {
			return false
		}
		c.made++
		appendCreate(c, path(i), data)
		return true
	}}
}

// prepareAll creates the znodes that rows need, and waits until each member has them.
func prepareAll(addrs []string) {
	prepare(addrs[0])
	syncAll(addrs)
}

// syncAll waits until each member has everything that any member answered before.
func syncAll(addrs []string) {
	path := rootPath
	for _, addr := range addrs {
		c := must.Get(dial(addr, 0, 1))
		must.Do(errors.Join(c.call(proto.OpSync, (&proto.PathRequest{Path: &path}).Append, 0), c.close()))
	}
}

// prepare creates the znodes that rows need.
func prepare(addr string) {
	for _, step := range [][]string{
		{rootPath, dataParent, listedParent, fewParent, madeParent}, // parents first
		dataPaths, paths(listedParent, nChildren), paths(fewParent, fewListed),
	} {
		createAll(addr, len(step), payload, func(i int) string { return step[i] })
	}
	createAll(addr, maxLoad*madeParents, nil, func(i int) string { return fmt.Sprintf("%s/%d", madeParent, i) })
}

// createAll creates n znodes over one connection, in order.
func createAll(addr string, n int, data []byte, path func(i int) string) {
	runOnce(target{addrs: []string{addr}}, shape{1, 64}, creates(1, n, data, path), 0)
}
