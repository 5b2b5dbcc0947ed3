package recipes_test

import (
	"bytes"
	"context"
	"errors"
	"log"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/zktest"
)

// TestConnect_Strings gives the servers as ZooKeeper's clients take them.
func TestConnect_Strings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := zktest.Start(t)
		one := s.ConnectString()
		for _, tc := range []struct {
			servers []string
			path    string // of /z on the server
		}{
			{[]string{one + "," + one}, "/z"},
			{[]string{one, one + "/"}, "/z"},
			{[]string{one + "/app"}, "/app/z"},
			{[]string{one, one + "/app/x"}, "/app/x/z"},
		} {
			c, err := recipes.Connect(t.Context(), tc.servers, recipes.Dialer(s.Dialer()))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Create(t.Context(), "/z", nil, recipes.CreateOptions{}); err != nil {
				t.Error(err)
			}
			s.AssertExists(tc.path)
			if err := c.DeleteGuaranteed(t.Context(), "/z"); err != nil {
				t.Error(err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	for _, bad := range [][]string{nil, {""}, {"/app"}, {"a:1/app", "b:2"}, {"a:port"}, {"a:1,"}, {"a:1/app/"}} {
		if _, err := recipes.Connect(t.Context(), bad); err == nil || !strings.HasPrefix(err.Error(), "recipes: connect: ") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestConnect_NoServer checks that Connect says why there is no session: in the error, and in the
// log if there is no deadline.
func TestConnect_NoServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		noHost := errors.New("no such host")
		dialer := recipes.Dialer(func(string, string, time.Duration) (net.Conn, error) { return nil, noHost })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var said bytes.Buffer
		_, err := recipes.Connect(ctx, []string{"nowhere"}, dialer, recipes.Logger(log.New(&said, "", 0)))
		if !errors.Is(err, noHost) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "nowhere:2181") {
			t.Error(err)
		}
		if n := strings.Count(said.String(), "still trying; the latest attempt: nowhere:2181: no such host"); n != 3 {
			t.Errorf("%d lines while Connect waits:\n%s", n, said.String())
		}
		silent := recipes.Dialer(func(string, string, time.Duration) (net.Conn, error) { time.Sleep(time.Minute); return nil, noHost })
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := recipes.Connect(ctx, []string{"nowhere"}, silent); err == nil || !strings.Contains(err.Error(), "no server has answered") {
			t.Error(err)
		}
	})
}
