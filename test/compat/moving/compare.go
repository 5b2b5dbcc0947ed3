package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/internal/testkit/rawclient"
	"github.com/gozkd/gozkd/internal/zkfiles"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
	"github.com/gozkd/gozkd/test/compat/server"
)

// znode is everything that a client can read of a znode.
type znode struct {
	data string
	null bool
	stat proto.Stat
	acl  string
}

// lost stands for the ACL of a znode if a server before 3.6 has lost the ACL, so that the znode
// cannot be read.
const lost = "lost"

// reader reads a tree as the superuser.
type reader struct {
	c    *rawclient.Conn
	tree map[string]znode
}

// readTree reads all znodes of a server.
func readTree(ctx context.Context, addr string) map[string]znode {
	c := must.Get(rawclient.Dial(ctx, addr))
	defer must.Finally(c.Close)
	must.Get(c.Handshake(rawclient.NewSession(sessionMs), timeout))
	r := &reader{c: c, tree: make(map[string]znode)}
	auth := proto.AuthRequest{Scheme: "digest", Auth: []byte("super:" + server.SuperPassword)}
	r.call(proto.OpAuth, auth.Append(nil))
	r.read("/")
	r.call(proto.OpCloseSession, nil)
	return r.tree
}

// call returns a decoder of the answer, or nil if the server cannot answer.
func (r *reader) call(op proto.OpCode, body []byte) *jute.Decoder {
	body, err := r.c.Call(1, op, body, timeout)
	if errors.Is(err, proto.ErrMarshallingError) {
		return nil
	}
	must.Doing(op.String(), func() { must.Do(err) })
	d := jute.NewDecoder(body)
	return &d
}

func (r *reader) read(path string) {
	var z znode
	d := r.call(proto.OpGetData, (&proto.PathWatchRequest{Path: path}).Append(nil))
	if d == nil { // the znode has an ACL that this ZooKeeper has lost
		r.tree[path] = znode{acl: lost}
		return
	}
	data := d.Buffer()
	z.data, z.null = string(data), data == nil
	z.stat.Decode(d)
	d = r.call(proto.OpGetACL, (&proto.PathRequest{Path: &path}).Append(nil))
	z.acl = fmt.Sprint(proto.DecodeACLs(d))
	r.tree[path] = z
	d = r.call(proto.OpGetChildren, (&proto.PathWatchRequest{Path: path}).Append(nil))
	for _, name := range d.Strings() {
		r.read(strings.TrimSuffix(path, "/") + "/" + name)
	}
}

// shown is how many differences are printed.
const shown = 8

// compareTrees fails unless two trees are equal. ZooKeeper's members and the statistics of quotas,
// which each server counts, may differ.
//
// logged is nil, or has the ACLs that the logs gave to znodes, for releases before 3.6: when such a
// server starts from a fuzzy snapshot, ACLs get new numbers, and a znode may get the ACL of another
// znode. wrong is the number of znodes with the ACL of the logs in got, and another ACL in want.
func compareTrees(want, got map[string]znode, logged map[string]string) (wrong int) {
	var differ, unreadable []string
	for _, path := range slices.Sorted(maps.Keys(want)) {
		a, b := want[path], got[path]
		switch {
		case strings.HasSuffix(path, "/zookeeper_stats"):
			a.data, b.data, a.stat.DataLength, b.stat.DataLength = "", "", 0, 0
		case path == "/zookeeper/config":
			continue
		case path == "/zookeeper":
			// 3.4 has no /zookeeper/config in it.
			a.stat.NumChildren, b.stat.NumChildren, a.stat.Cversion, b.stat.Cversion = 0, 0, 0, 0
		}
		if a.acl == lost && logged[path] == b.acl {
			unreadable = append(unreadable, path)
			wrong++
			continue
		}
		if a.acl != b.acl && logged[path] == b.acl {
			a.acl = b.acl
			wrong++
		}
		if _, there := got[path]; !there || a != b {
			differ = append(differ, fmt.Sprintf("%s\n  want %.400s\n  got  %.400s", path, fmt.Sprintf("%+v", a), fmt.Sprintf("%+v", b)))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(got)) {
		below := slices.ContainsFunc(unreadable, func(top string) bool { return strings.HasPrefix(path, top+"/") })
		if _, there := want[path]; !there && !below && path != "/zookeeper/config" {
			differ = append(differ, path+" should not be there")
		}
	}
	if len(differ) > 0 {
		must.Failf("%d of %d znodes differ:\n%s", len(differ), len(want), strings.Join(differ[:min(len(differ), shown)], "\n"))
	}
	return wrong
}

// loggedACLs returns the ACL that the logs in dir gave last to each path, as znode.acl.
func loggedACLs(dir string) map[string]string {
	acls := make(map[string]string)
	var apply func(t *zkfiles.Txn)
	apply = func(t *zkfiles.Txn) {
		switch {
		case t.ACL != nil:
			acls[t.Path] = fmt.Sprint(t.ACL)
		case t.Op == proto.OpMulti && !t.Failed():
			for i := range t.Ops {
				apply(&t.Ops[i])
			}
		}
	}
	names := must.Get(filepath.Glob(filepath.Join(dir, "version-2", "log.*")))
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) }) // by zxid
	for _, name := range names {
		l := must.Get(zkfiles.NewLogReader(bytes.NewReader(must.Get(os.ReadFile(name)))))
		for {
			r, err := l.Next()
			if err != nil {
				break // the end, or a torn record
			}
			apply(&r.Txn)
		}
	}
	return acls
}

// resume takes up sessions as their clients would, and returns how many.
func resume(ctx context.Context, addr string, sessions []sessionID) (n int) {
	for _, s := range sessions {
		c := must.Get(rawclient.Dial(ctx, addr))
		resp := must.Get(c.Handshake(&proto.ConnectRequest{TimeoutMs: sessionMs, SessionID: s.id, Passwd: s.passwd}, timeout))
		if resp.SessionID == s.id && resp.TimeoutMs > 0 {
			n++
		}
		must.Do(c.Close())
	}
	return n
}
