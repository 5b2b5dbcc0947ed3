package server_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

func TestFindWatches(t *testing.T) {
	s, err := server.New(server.Config{InProcess: true})
	if err == nil {
		err = s.Start(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	zk, err := client.Connect(t.Context(), client.Config{
		Servers: []string{"x:1"}, Dial: func(ctx context.Context, _ string) (net.Conn, error) { return s.Dial(ctx) }, Auths: []client.Auth{{Scheme: "digest", Credential: []byte("ann:secret")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = zk.Close() })
	id := zk.Session().ID
	_, _, errExists := zk.Exists(t.Context(), "/a", true)
	_, _, errChildren := zk.Children(t.Context(), "/", true)
	err = errors.Join(errExists, errChildren, zk.AddWatch(t.Context(), "/a", proto.AddWatchPersistentRecursive),
		zk.AddWatch(t.Context(), "/b", proto.AddWatchPersistent))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		prefix string
		limit  int
		want   string
	}{
		{"", 10, "/ [children], /a [data recursive], /b [persistent] false"},
		{"/a", 10, "/a [data recursive] false"},
		{"/c", 10, " false"},
		{"", 3, "/ [children], /a [data recursive], /b [persistent] false"},
		{"/a", 0, " true"},
	} {
		found, more := s.Facts().FindWatches(func(session int64, path string) bool {
			return session == id && (path == "" || strings.HasPrefix(path, c.prefix))
		}, c.limit)
		var got []string
		for _, w := range found {
			got = append(got, fmt.Sprint(w.Path, " ", w.Kinds))
		}
		if got := fmt.Sprint(strings.Join(got, ", "), " ", more); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
	if found, more := s.Facts().FindWatches(func(int64, string) bool { return true }, 2); len(found) != 2 || !more {
		t.Errorf("limit 2: %v, %v", found, more)
	}
	if conns := s.Facts().Connections(); len(conns) != 1 || fmt.Sprint(conns[0].Identities) != "[digest:ann]" || conns[0].Heard.IsZero() {
		t.Errorf("connections %+v", conns)
	}
}
