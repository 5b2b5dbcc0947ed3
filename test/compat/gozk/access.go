package gozk

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"
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

func aclGetSet(_ context.Context, c *zk.Conn, root string) error {
	acl, stat, err := c.GetACL(root)
	if err != nil {
		return err
	}
	if !slices.Equal(acl, open()) || stat.Aversion != 0 {
		return fmt.Errorf("got %v %+v", acl, stat)
	}
	next := append(zk.DigestACL(zk.PermRead, "joe", "secret"), open()...)
	if stat, err = c.SetACL(root, next, 0); err != nil {
		return err
	}
	acl, _, err = c.GetACL(root)
	if err != nil {
		return err
	}
	// go-zookeeper's own session has every permission, so the digest is shown in full.
	if !slices.Equal(acl, next) || stat.Aversion != 1 {
		return fmt.Errorf("got %v %+v", acl, stat)
	}
	return nil
}

func (s *script) aclDigest(ctx context.Context, c *zk.Conn, root string) error {
	path, err := c.Create(root+"/a", []byte("mine"), 0, zk.DigestACL(zk.PermAll, "joe", "secret"))
	if err != nil {
		return err
	}
	if _, _, err := c.Get(path); !errors.Is(err, zk.ErrNoAuth) {
		return want("get", err, zk.ErrNoAuth)
	}
	joe, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer joe.Close()
	if err := joe.AddAuth("digest", []byte("joe:secret")); err != nil {
		return err
	}
	data, _, err := joe.Get(path)
	if err == nil && string(data) != "mine" {
		err = fmt.Errorf("got %q", data)
	}
	return err
}

func aclAuth(_ context.Context, c *zk.Conn, root string) error {
	_, err := c.Create(root+"/before", nil, 0, zk.AuthACL(zk.PermAll))
	if err := want("auth ACL without auth", err, zk.ErrInvalidACL); err != nil {
		return err
	}
	if err := c.AddAuth("digest", []byte("ann:pw")); err != nil {
		return err
	}
	path, err := c.Create(root+"/a", nil, 0, zk.AuthACL(zk.PermAll))
	if err != nil {
		return err
	}
	acl, _, err := c.GetACL(path)
	if err != nil {
		return err
	}
	if !slices.Equal(acl, zk.DigestACL(zk.PermAll, "ann", "pw")) {
		return fmt.Errorf("got %v", acl)
	}
	return nil
}

func aclIP(_ context.Context, c *zk.Conn, root string) error {
	for _, x := range []struct {
		id      string
		allowed bool
	}{{"127.0.0.1", true}, {"127.0.0.0/8", true}, {"10.0.0.0/8", false}} {
		path, err := c.Create(root+"/ip-", nil, zk.FlagSequence, []zk.ACL{{Perms: zk.PermAll, Scheme: "ip", ID: x.id}})
		if err != nil {
			return fmt.Errorf("%s: %w", x.id, err)
		}
		_, _, err = c.Get(path)
		if x.allowed && err != nil || !x.allowed && !errors.Is(err, zk.ErrNoAuth) {
			return fmt.Errorf("%s: get: %w", x.id, err)
		}
	}
	_, err := c.Create(root+"/bad", nil, 0, []zk.ACL{{Perms: zk.PermAll, Scheme: "ip", ID: "no.such.address"}})
	return want("bad address", err, zk.ErrInvalidACL)
}

// aclEachPermission removes a permission at a time and tries everything.
func (s *script) aclEachPermission(_ context.Context, c *zk.Conn, root string) error {
	acts := map[int32]func(path string) error{
		zk.PermRead:   func(p string) error { _, _, err := c.Get(p); return err },
		zk.PermWrite:  func(p string) error { _, err := c.Set(p, nil, -1); return err },
		zk.PermCreate: func(p string) error { _, err := c.Create(p+"/new", nil, 0, open()); return err },
		zk.PermDelete: func(p string) error { return c.Delete(p+"/child", -1) },
		zk.PermAdmin:  func(p string) error { _, err := c.SetACL(p, open(), -1); return err },
	}
	for denied, act := range acts {
		path, err := c.Create(root+"/p-", nil, zk.FlagSequence, open())
		if err != nil {
			return err
		}
		if _, err := c.Create(path+"/child", nil, 0, open()); err != nil {
			return err
		}
		if _, err := c.SetACL(path, zk.WorldACL(zk.PermAll&^denied), -1); err != nil {
			return err
		}
		for perm, try := range acts {
			// An allowed setACL would restore the permission.
			if perm != denied && perm != zk.PermAdmin {
				if err := try(path); err != nil {
					return fmt.Errorf("permission %d with %d taken away: %w", perm, denied, err)
				}
			}
		}
		if err := want(fmt.Sprintf("permission %d taken away", denied), act(path), zk.ErrNoAuth); err != nil {
			return err
		}
	}
	return nil
}

func (s *script) super(_ context.Context, c *zk.Conn, root string) error {
	path, err := c.Create(root+"/a", nil, 0, zk.DigestACL(zk.PermAll, "nobody", "x"))
	if err != nil {
		return err
	}
	_, _, before := c.Get(path)
	if err := c.AddAuth("digest", []byte("super:"+s.superPassword)); err != nil {
		return err
	}
	_, _, after := c.Get(path)
	return errors.Join(want("before", before, zk.ErrNoAuth), want("after", after, nil))
}

func (s *script) authFailed(ctx context.Context, _ *zk.Conn, _ string) error {
	c, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.AddAuth("nosuchscheme", []byte("x")); err == nil {
		return errors.New("an unknown scheme was accepted")
	}
	return nil
}
