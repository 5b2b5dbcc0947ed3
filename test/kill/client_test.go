package kill

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/rawclient"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// A client is a connection with a session. Not safe for concurrent use.
type client struct {
	*rawclient.Conn
	session proto.SessionID
	passwd  []byte
	xid     int32 // of the last request
}

// A reply is the header of an answer, and its body.
type reply struct {
	proto.ReplyHeader
	body jute.Decoder
}

// A znode is the result of a read. exists is false for a missing znode.
type znode struct {
	exists bool
	data   string
	stat   proto.Stat
}

// newSession asks for a new session.
func newSession(timeout time.Duration) *proto.ConnectRequest {
	return &proto.ConnectRequest{TimeoutMs: int32(timeout.Milliseconds()), Passwd: make([]byte, proto.PasswdBytes)}
}

// open connects. It returns errRefused if the server does not know the session.
func open(ctx context.Context, addr string, req *proto.ConnectRequest) (*client, error) {
	conn, err := dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	resp, err := conn.Handshake(req, patience)
	if err == nil && resp.TimeoutMs <= 0 {
		err = errRefused
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &client{Conn: conn, session: resp.SessionID, passwd: resp.Passwd}, nil
}

// append appends a request with the next xid.
func (c *client) append(b []byte, op proto.OpCode, body []byte) []byte {
	c.xid++
	return rawclient.AppendRequest(b, c.xid, op, body)
}

// next returns the next reply.
func (c *client) next() (reply, error) {
	frame, err := c.ReadFrame(patience)
	if err != nil {
		return reply{}, err
	}
	r := reply{body: jute.NewDecoder(frame)}
	r.Decode(&r.body)
	return r, r.body.Err()
}

// call sends one request and waits for its reply, with nothing else under way.
func (c *client) call(op proto.OpCode, body []byte) (reply, error) {
	if err := c.Write(c.append(nil, op, body), patience); err != nil {
		return reply{}, err
	}
	r, err := c.next()
	if err == nil && r.Xid != c.xid {
		err = fmt.Errorf("reply to request %d, want %d", r.Xid, c.xid)
	}
	return r, err
}

// get reads a znode.
func (c *client) get(path string) (znode, error) {
	nodes, err := c.getAll([]string{path})
	if err != nil {
		return znode{}, err
	}
	return nodes[0], nil
}

// getAll reads znodes, many per round trip.
func (c *client) getAll(paths []string) ([]znode, error) {
	const burst = 100
	nodes := make([]znode, 0, len(paths))
	for len(paths) > 0 {
		n := min(burst, len(paths))
		var b []byte
		for _, p := range paths[:n] {
			b = c.append(b, proto.OpGetData, (&proto.PathWatchRequest{Path: p}).Append(nil))
		}
		if err := c.Write(b, patience); err != nil {
			return nil, err
		}
		for _, p := range paths[:n] {
			r, err := c.next()
			if err != nil {
				return nil, err
			}
			if r.Err == proto.ErrNoNode {
				nodes = append(nodes, znode{})
				continue
			}
			if r.Err != proto.OK {
				return nil, fmt.Errorf("read %s: %w", p, r.Err)
			}
			var d proto.DataResponse
			if d.Decode(&r.body); r.body.Err() != nil {
				return nil, r.body.Err()
			}
			nodes = append(nodes, znode{exists: true, data: string(d.Data), stat: d.Stat})
		}
		paths = paths[n:]
	}
	return nodes, nil
}

// children returns the paths of the children of a znode.
func (c *client) children(parent string) ([]string, error) {
	r, err := c.call(proto.OpGetChildren, (&proto.PathWatchRequest{Path: parent}).Append(nil))
	if err != nil {
		return nil, err
	}
	if r.Err != proto.OK {
		return nil, fmt.Errorf("children of %s: %w", parent, r.Err)
	}
	var children proto.ChildrenResponse
	if children.Decode(&r.body, proto.OpGetChildren); r.body.Err() != nil {
		return nil, r.body.Err()
	}
	paths := make([]string, len(children.Children))
	for i, name := range children.Children {
		paths[i] = parent + "/" + name
	}
	return paths, nil
}

// list reads the children of a znode, by path. None may be deleted meanwhile.
func (c *client) list(parent string) (map[string]znode, error) {
	paths, err := c.children(parent)
	if err != nil {
		return nil, err
	}
	nodes, err := c.getAll(paths)
	if err != nil {
		return nil, err
	}
	found := make(map[string]znode, len(paths))
	for i, p := range paths {
		if !nodes[i].exists {
			return nil, fmt.Errorf("%s is listed but can't be read, with nothing under way", p)
		}
		found[p] = nodes[i]
	}
	return found, nil
}

// create makes a znode.
func (c *client) create(path, data string) error {
	r, err := c.call(proto.OpCreate, createBody(path, data, proto.ModePersistent))
	if err == nil && r.Err != proto.OK {
		err = fmt.Errorf("create %s: %w", path, r.Err)
	}
	return err
}

// end closes the session and the connection.
func (c *client) end() error {
	_, err := c.call(proto.OpCloseSession, nil)
	return errors.Join(err, c.Close())
}

func createBody(path, data string, mode proto.CreateMode) []byte {
	return (&proto.CreateRequest{Path: path, Data: []byte(data), ACL: proto.OpenACL(), Mode: mode}).Append(nil, proto.OpCreate)
}

func setBody(path, data string, version int32) []byte {
	return (&proto.SetDataRequest{Path: path, Data: []byte(data), Version: version}).Append(nil)
}
