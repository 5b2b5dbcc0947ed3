package gozk

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/cases"
)

func (s *script) access() []work {
	return []work{
		{"acl_get_set", aclGetSet},
		{"acl_digest", s.aclDigest},
		{"acl_auth", aclAuth},
		{"acl_ip", aclIP},
		{"acl_each_permission", s.aclEachPermission},
		{"super", s.super},
		{"auth_failed", s.authFailed},
	}
}

func aclGetSet(_ context.Context, c *zk.Conn, root string) {
	acl, stat := must.Get2(c.GetACL(root))
	if !slices.Equal(acl, open()) || stat.Aversion != 0 {
		must.Failf("got %v %+v", acl, stat)
	}
	next := append(zk.DigestACL(zk.PermRead, "joe", "secret"), open()...)
	stat = must.Get(c.SetACL(root, next, 0))
	acl, _ = must.Get2(c.GetACL(root))
	// go-zookeeper's own session has every permission, so the digest is shown in full.
	if !slices.Equal(acl, next) || stat.Aversion != 1 {
		must.Failf("got %v %+v", acl, stat)
	}
}

func (s *script) aclDigest(ctx context.Context, c *zk.Conn, root string) {
	path := must.Get(c.Create(root+"/a", []byte("mine"), 0, zk.DigestACL(zk.PermAll, "joe", "secret")))
	_, _, err := c.Get(path)
	want("get", err, zk.ErrNoAuth)
	joe := s.connect(ctx)
	defer joe.Close()
	must.Do(joe.AddAuth("digest", []byte("joe:secret")))
	data, _ := must.Get2(joe.Get(path))
	cases.Expect("data", string(data), "mine")
}

func aclAuth(_ context.Context, c *zk.Conn, root string) {
	_, err := c.Create(root+"/before", nil, 0, zk.AuthACL(zk.PermAll))
	want("auth ACL without auth", err, zk.ErrInvalidACL)
	must.Do(c.AddAuth("digest", []byte("ann:pw")))
	path := must.Get(c.Create(root+"/a", nil, 0, zk.AuthACL(zk.PermAll)))
	acl, _ := must.Get2(c.GetACL(path))
	if !slices.Equal(acl, zk.DigestACL(zk.PermAll, "ann", "pw")) {
		must.Failf("got %v", acl)
	}
}

func aclIP(_ context.Context, c *zk.Conn, root string) {
	for _, x := range []struct {
		id      string
		allowed bool
	}{{"127.0.0.1", true}, {"127.0.0.0/8", true}, {"10.0.0.0/8", false}} {
		path, err := c.Create(root+"/ip-", nil, zk.FlagSequence, []zk.ACL{{Perms: zk.PermAll, Scheme: "ip", ID: x.id}})
		if err != nil {
			must.Failf("%s: %w", x.id, err)
		}
		_, _, err = c.Get(path)
		if x.allowed && err != nil || !x.allowed && !errors.Is(err, zk.ErrNoAuth) {
			must.Failf("%s: get: %w", x.id, err)
		}
	}
	_, err := c.Create(root+"/bad", nil, 0, []zk.ACL{{Perms: zk.PermAll, Scheme: "ip", ID: "no.such.address"}})
	want("bad address", err, zk.ErrInvalidACL)
}

// aclEachPermission removes a permission at a time and tries everything.
func (s *script) aclEachPermission(_ context.Context, c *zk.Conn, root string) {
	acts := map[int32]func(path string) error{
		zk.PermRead:   func(p string) error { _, _, err := c.Get(p); return err },
		zk.PermWrite:  func(p string) error { _, err := c.Set(p, nil, -1); return err },
		zk.PermCreate: func(p string) error { _, err := c.Create(p+"/new", nil, 0, open()); return err },
		zk.PermDelete: func(p string) error { return c.Delete(p+"/child", -1) },
		zk.PermAdmin:  func(p string) error { _, err := c.SetACL(p, open(), -1); return err },
	}
	for denied, act := range acts {
		path := must.Get(c.Create(root+"/p-", nil, zk.FlagSequence, open()))
		must.Get(c.Create(path+"/child", nil, 0, open()))
		must.Get(c.SetACL(path, zk.WorldACL(zk.PermAll&^denied), -1))
		for perm, try := range acts {
			// An allowed setACL would restore the permission.
			if perm != denied && perm != zk.PermAdmin {
				if err := try(path); err != nil {
					must.Failf("permission %d with %d taken away: %w", perm, denied, err)
				}
			}
		}
		want(fmt.Sprintf("permission %d taken away", denied), act(path), zk.ErrNoAuth)
	}
}

func (s *script) super(_ context.Context, c *zk.Conn, root string) {
	path := must.Get(c.Create(root+"/a", nil, 0, zk.DigestACL(zk.PermAll, "nobody", "x")))
	_, _, before := c.Get(path)
	must.Do(c.AddAuth("digest", []byte("super:"+s.superPassword)))
	_, _, after := c.Get(path)
	want("before", before, zk.ErrNoAuth)
	want("after", after, nil)
}

func (s *script) authFailed(ctx context.Context, _ *zk.Conn, _ string) {
	c := s.connect(ctx)
	defer c.Close()
	if err := c.AddAuth("nosuchscheme", []byte("x")); err == nil {
		must.Failf("an unknown scheme was accepted")
	}
}
