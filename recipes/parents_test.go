package recipes_test

import (
	"testing"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/testkit/recipetest"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/zktest"
)

func TestEnsure(t *testing.T) {
	bubbles(t, func(t *testing.T, kind recipetest.Kind) {
		s := zktest.Start(t)
		c := recipetest.Open(t, kind, s.Service, 10*time.Second, recipes.Auth("digest", []byte("anna:secret")), recipes.ACL(proto.ACL{Perms: proto.PermAll, ID: proto.ID{Scheme: "auth"}})).Namespace("/n/s")
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
		c := recipetest.Open(t, kind, s.Service, 10*time.Second, recipes.Auth("digest", []byte("anna:secret")), recipes.ACL(proto.ACL{Perms: proto.PermAll, ID: proto.ID{Scheme: "auth"}}))
		_, err := c.Multi(t.Context(), client.CreateOp("/a", nil, client.CreateOptions{}), client.CreateOp("/b", nil, client.CreateOptions{ACL: proto.ReadACL()}))
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
