package client_test

import (
	"errors"
	"testing"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
)

// FuzzReplies answers every method with the same bytes: there is no panic, and every error is an
// *Error.
func FuzzReplies(f *testing.F) {
	stat := (&proto.Stat{Version: 1}).Append(nil)
	f.Add([]byte{})
	f.Add(stat)
	f.Add((&proto.DataResponse{Data: []byte("x")}).Append(nil))
	f.Add((&proto.ACLResponse{ACL: proto.OpenACL()}).Append(nil))
	f.Add((&proto.CreateResponse{Path: "/a"}).Append(nil, proto.OpCreate2))
	f.Add((&proto.MultiResponse{Results: []proto.MultiResult{{Op: proto.OpDelete}, {Op: proto.OpError, Err: proto.ErrNoNode}}}).Append(nil))
	f.Add((&proto.StringsResponse{Strings: []string{"/app/x", "/other"}}).Append(nil))
	f.Add([]byte{0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, body []byte) {
		c, _ := connectFake(t, &fake{answer: polite(func(h proto.RequestHeader, _ []byte) []byte { return reply(h.Xid, 1, proto.OK, body) })},
			func(cfg *client.Config) { cfg.Chroot = "/app" })
		ctx := t.Context()
		_, _, err := c.Create(ctx, "/a", nil, client.CreateOptions{})
		errs := []error{err}
		_, _, err = c.Get(ctx, "/a", true)
		errs = append(errs, err)
		_, _, err = c.Exists(ctx, "/a", true)
		errs = append(errs, err)
		_, _, err = c.Children(ctx, "/a", true)
		errs = append(errs, err)
		_, err = c.ChildrenCount(ctx, "/a")
		errs = append(errs, err)
		_, err = c.Ephemerals(ctx, "/")
		errs = append(errs, err)
		_, _, err = c.GetACL(ctx, "/a")
		errs = append(errs, err)
		_, err = c.Sync(ctx, "/a")
		errs = append(errs, err)
		_, err = c.WhoAmI(ctx)
		errs = append(errs, err)
		_, err = c.Multi(ctx, client.DeleteOp("/a", 1), client.SetOp("/a", nil, 1))
		errs = append(errs, err)
		_, err = c.MultiRead(ctx, client.GetOp("/a"), client.ChildrenOp("/a"))
		errs = append(errs, err)
		for _, err := range errs {
			if err != nil && !errors.As(err, new(*client.Error)) {
				t.Errorf("%T: %v", err, err)
			}
		}
	})
}
