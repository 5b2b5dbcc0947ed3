package server_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

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

func TestRewind(t *testing.T) {
	s := start(t, server.Config{})
	c := dialIn(t, s, 10*time.Second)
	must[string](t)(c.Create("/a-", []byte("x"), zk.FlagSequence, zk.WorldACL(zk.PermAll)))
	before := s.Snapshot()
	want := fmt.Sprint(tree(s))
	_, _, changed, err := c.GetW("/a-0000000000")
	if err != nil {
		t.Fatal(err)
	}
	must[string](t)(c.Create("/a-", nil, zk.FlagSequence, zk.WorldACL(zk.PermAll)))
	if err := c.Delete("/a-0000000000", -1); err != nil {
		t.Fatal(err)
	}
	<-changed
	if err := s.Rewind(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(tree(s)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if path := must[string](t)(c.Create("/a-", nil, zk.FlagSequence, zk.WorldACL(zk.PermAll))); path != "/a-0000000001" {
		t.Errorf("the next name is %s", path)
	}
	if err := s.Rewind(t.Context(), []byte("nonsense")); !errors.Is(err, proto.ErrMarshallingError) || !strings.Contains(err.Error(), "snapshot") {
		t.Errorf("nonsense: %v", err)
	}
	// Only the server itself may.
	other, _ := s.Dial(t.Context())
	r := &raw{t: t, nc: other}
	r.connect(10_000, 0, nil)
	if h, _ := r.call(1, proto.OpRewind, rawBody(before)); h.Err != proto.ErrUnimplemented {
		t.Errorf("a client's rewind: %v", h.Err)
	}
}

// rawBody is a request's body as it is.
type rawBody []byte

func (b rawBody) Append(to []byte) []byte { return append(to, b...) }
