package server_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

func tree(s *server.Server) map[string]string {
	got := map[string]string{}
	s.Walk("/", func(z server.Znode) bool {
		if !strings.HasPrefix(z.Path, "/zookeeper") {
			got[z.Path] = string(z.Data)
		}
		return true
	})
	return got
}

// A write that was refused before a restart is not reported again when the log is replayed.
func TestRefusedWrite_ReportedOnce(t *testing.T) {
	var said bytes.Buffer
	cfg := server.Config{Dir: t.TempDir(), MaxBuffer: 10_000, Logger: hclog.New(&hclog.LoggerOptions{Output: &said})}
	for i := range 2 {
		s, err := server.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if err := s.Load(t.Context(), map[string][]byte{"/large": make([]byte, 10_000)}); err == nil {
				t.Error("a znode that is too large is loaded")
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(said.String(), "write refused"); n != 1 {
		t.Errorf("reported %d times:\n%s", n, said.String())
	}
}

func TestLoad(t *testing.T) {
	s := start(t, server.Config{MaxBuffer: 10_000})
	c := dialIn(t, s, 10*time.Second)
	must[string](t)(c.Create("/e", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)))
	must[string](t)(c.Create("/closed", nil, 0, zk.DigestACL(zk.PermAll, "user", "password")))
	load := func(znodes map[string]string) error {
		data := map[string][]byte{}
		for path, text := range znodes {
			data[path] = []byte(text)
		}
		return s.Load(t.Context(), data)
	}
	if err := load(map[string]string{"/": "root", "/a/b/c": "deep", "/a": "a", "/closed": "all the same"}); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprint(map[string]string{"/": "root", "/a": "a", "/a/b": "", "/a/b/c": "deep", "/closed": "all the same", "/e": ""})
	for _, bad := range []struct {
		znodes map[string]string
		says   []string
		code   error
	}{
		{map[string]string{"no": "", "/a/../b": "", "/a/": "", "/good": ""}, []string{`"no"`, `"/a/../b"`, `"/a/"`}, nil},
		{map[string]string{"/good": "", "/e/below": ""}, []string{"/e/below"}, proto.ErrNoChildrenForEphemerals},
		{map[string]string{"/good": "", "/large": strings.Repeat("x", 10_000)}, []string{"/large", "jute.maxbuffer"}, proto.ErrMarshallingError},
	} {
		err := load(bad.znodes)
		if err == nil || bad.code != nil && !errors.Is(err, bad.code) {
			t.Errorf("load %.100q: %v", bad.znodes, err)
			continue
		}
		for _, word := range bad.says {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("load %.100q: the error does not name %s: %v", bad.znodes, word, err)
			}
		}
		if got := fmt.Sprint(tree(s)); got != want {
			t.Errorf("after load %.100q: %s, want %s", bad.znodes, got, want)
		}
	}
}

func TestMulti_OnBehalfOfASession(t *testing.T) {
	s := start(t, server.Config{})
	c := dialIn(t, s, 10*time.Second)
	must[string](t)(c.Create("/closed", nil, 0, zk.DigestACL(zk.PermAll, "user", "password")))
	ctx := t.Context()
	create := proto.MultiOp{Op: proto.OpCreate, Path: "/closed/e", ACL: proto.OpenACL(), Mode: proto.ModeEphemeral}
	if err := s.Multi(ctx, c.SessionID(), create); err != nil {
		t.Fatal(err)
	}
	s.Walk("/closed/e", func(z server.Znode) bool {
		if int64(z.Stat.EphemeralOwner) != c.SessionID() || z.Mode != proto.ModeEphemeral {
			t.Errorf("%+v", z)
		}
		return true
	})
	remove := proto.MultiOp{Op: proto.OpDelete, Path: "/closed/e", Version: -1}
	if err := s.Multi(ctx, 0, remove, create); !errors.Is(err, proto.ErrSessionExpired) || !strings.Contains(err.Error(), "/closed/e") {
		t.Errorf("an ephemeral of no session: %v", err)
	}
	if err := s.Multi(ctx, 7, create); !errors.Is(err, server.ErrNoSession) {
		t.Errorf("a session that does not exist: %v", err)
	}
	if err := s.SetACL(ctx, "/closed", proto.ReadACL()); err != nil {
		t.Error(err)
	}
	if err := s.SetACL(ctx, "/none", proto.ReadACL()); !errors.Is(err, proto.ErrNoNode) {
		t.Errorf("the ACL of nothing: %v", err)
	}
	acl, _, err := c.GetACL("/closed")
	if err != nil || len(acl) != 1 || acl[0].Perms != zk.PermRead {
		t.Errorf("%v %v", acl, err)
	}
}

// rawBody is an encoded request body.
type rawBody []byte

func (b rawBody) Append(to []byte) []byte { return append(to, b...) }
