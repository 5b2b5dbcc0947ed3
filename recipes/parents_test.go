package recipes_test

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/zktest"
)

func TestEnsure(t *testing.T) {
	bubbles(t, func(t *testing.T, kind recipetest.Kind) {
		s := zktest.Start(t)
		c := recipetest.Open(t, kind, s.Service, 10*time.Second, recipes.Auth("digest", []byte("anna:secret")), recipes.ACL(zk.DigestACL(zk.PermAll, "anna", "secret")...)).Namespace("/n/s")
		s.DropReply(zktest.Create)
		for range 2 {
			if err := c.Ensure(t.Context(), "/a/b"); err != nil {
				t.Fatal(err)
			}
		}
		if got := s.Znode("/n/s/a/b").ACL; len(got) != 1 || got[0].ID.Scheme != "digest" {
			t.Error(got)
		}
	})
}

func TestMulti_ACL(t *testing.T) {
	bubbles(t, func(t *testing.T, kind recipetest.Kind) {
		s := zktest.Start(t)
		c := recipetest.Open(t, kind, s.Service, 10*time.Second, recipes.Auth("digest", []byte("anna:secret")), recipes.ACL(zk.DigestACL(zk.PermAll, "anna", "secret")...))
		_, err := c.Multi(t.Context(), &zk.CreateRequest{Path: "/a"}, &zk.CreateRequest{Path: "/b", Acl: zk.WorldACL(zk.PermRead)})
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Znode("/a").ACL; len(got) != 1 || got[0].ID.Scheme != "digest" {
			t.Error(got)
		}
		if got := s.Znode("/b").ACL; len(got) != 1 || got[0].ID.Scheme != "world" {
			t.Error(got)
		}
	})
}
