package jepsenlite

import (
	"path"
	"slices"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// loadFinal names the clients that read everything in the end, one per member: final-1 reads from
// member 1.
const loadFinal = "final"

// dump reads a tree from a member after a sync; checks judge it from the history. It returns the
// paths, parents before children.
func dump(rec *Recorder, name, address string, member int, root string) (paths []string, err error) {
	c, err := openRaw(rec, name, address, member, sessionTimeout, proto.ConnectResponse{}, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }() // nothing is lost with it
	if _, err := c.ask([][]byte{c.request(nil, proto.OpSync, (&proto.PathRequest{Path: &root}).Append(nil))}); err != nil {
		return nil, err
	}
	for level := []string{root}; len(level) > 0; {
		paths = append(paths, level...)
		var lists, gets [][]byte
		for _, p := range level {
			body := (&proto.PathWatchRequest{Path: p}).Append(nil)
			lists = append(lists, c.request(nil, proto.OpGetChildren2, body))
		}
		frames, err := c.ask(lists)
		if err != nil {
			return nil, err
		}
		var below []string
		for i, frame := range frames {
			var h proto.ReplyHeader
			d := jute.NewDecoder(frame)
			if h.Decode(&d); h.Err != proto.OK {
				continue
			}
			var resp proto.ChildrenResponse
			resp.Decode(&d, proto.OpGetChildren2)
			slices.Sort(resp.Children)
			for _, name := range resp.Children {
				below = append(below, path.Join(level[i], name))
			}
		}
		for _, p := range level {
			gets = append(gets, c.request(nil, proto.OpGetData, (&proto.PathWatchRequest{Path: p}).Append(nil)))
		}
		if _, err := c.ask(gets); err != nil {
			return nil, err
		}
		level = below
	}
	return paths, nil
}

// remove deletes znodes, given parents before children.
func remove(rec *Recorder, address string, paths []string) error {
	c, err := openRaw(rec, "remove", address, 0, sessionTimeout, proto.ConnectResponse{}, 0)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // as in dump
	var requests [][]byte
	for _, p := range slices.Backward(paths) {
		requests = append(requests, c.request(nil, proto.OpDelete, (&proto.PathVersionRequest{Path: p, Version: -1}).Append(nil)))
	}
	_, err = c.ask(requests)
	return err
}

// ask sends requests in small batches and returns the payloads of their replies.
func (c *rawConn) ask(requests [][]byte) ([][]byte, error) {
	const together = 200
	var replies [][]byte
	for some := range slices.Chunk(requests, together) {
		if err := c.send(slices.Concat(some...)); err != nil {
			return nil, err
		}
		for range some {
			frame, err := c.receive()
			if err != nil {
				return nil, err
			}
			replies = append(replies, frame)
		}
	}
	return replies, nil
}
