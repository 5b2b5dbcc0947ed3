package jepsenlite

import (
	"path"
	"slices"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// loadFinal names the clients that read everything in the end: final-1 reads from member 1.
const loadFinal = "final"

// dump reads a tree from a member after a sync; checks judge it from the history. It returns the
// paths, parents before children.
func dump(rec *Recorder, name, address string, member int, root string) (paths []string) {
	c := must.Get(openRaw(rec, name, address, member, sessionTimeout, proto.ConnectResponse{}, 0))
	defer func() { _ = c.Close() }() // nothing is lost with it
	c.ask([][]byte{c.request(nil, proto.OpSync, (&proto.PathRequest{Path: &root}).Append(nil))})
	read := func(op proto.OpCode, paths []string) []jute.Decoder {
		var requests [][]byte
		for _, p := range paths {
			requests = append(requests, c.request(nil, op, (&proto.PathWatchRequest{Path: p}).Append(nil)))
		}
		return c.ask(requests)
	}
	for level := []string{root}; len(level) > 0; {
		paths = append(paths, level...)
		var below []string
		for i, d := range read(proto.OpGetChildren2, level) {
			var resp proto.ChildrenResponse
			resp.Decode(&d, proto.OpGetChildren2) // empty if the reply is an error
			slices.Sort(resp.Children)
			for _, name := range resp.Children {
				below = append(below, path.Join(level[i], name))
			}
		}
		read(proto.OpGetData, level)
		level = below
	}
	return paths
}

// remove deletes znodes, given parents before children.
func remove(rec *Recorder, address string, paths []string) {
	c := must.Get(openRaw(rec, "remove", address, 0, sessionTimeout, proto.ConnectResponse{}, 0))
	defer func() { _ = c.Close() }() // as in dump
	var requests [][]byte
	for _, p := range slices.Backward(paths) {
		requests = append(requests, c.request(nil, proto.OpDelete, (&proto.PathVersionRequest{Path: p, Version: -1}).Append(nil)))
	}
	c.ask(requests)
}

// ask sends requests in small batches and returns the bodies of their replies.
func (c *rawConn) ask(requests [][]byte) (bodies []jute.Decoder) {
	const together = 200
	for some := range slices.Chunk(requests, together) {
		must.Do(c.send(slices.Concat(some...)))
		for range some {
			_, body := must.Get2(c.receive())
			bodies = append(bodies, body)
		}
	}
	return bodies
}
