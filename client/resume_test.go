package client_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// TestDetach: the session and its ephemerals outlive a detached Client, and another Client resumes
// and ends the session.
func TestDetach(t *testing.T) {
	s := startServer(t, server.Config{})
	c, e, _ := connect(t, s)
	if _, _, err := c.Create(t.Context(), "/e", nil, client.CreateOptions{Ephemeral: true}); err != nil {
		t.Fatal(err)
	}
	before := c.Session()
	c.Detach()
	c.Detach()
	e.awaitState(t, client.Closed)
	if err := c.Close(); err != nil || !errors.Is(c.Err(), client.ErrClosed) {
		t.Errorf("closed: %v, %v", err, c.Err())
	}
	next, _, _ := connect(t, s, func(cfg *client.Config) { cfg.Resume = &before })
	after := next.Session()
	stat, there, err := next.Exists(t.Context(), "/e", false)
	if err != nil || !there || int64(stat.EphemeralOwner) != before.ID || after.ID != before.ID || after.Timeout != before.Timeout {
		t.Errorf("session %+v, was %+v; the ephemeral: %+v, %v, %v", after, before, stat, there, err)
	}
	if err := next.Close(); err != nil {
		t.Fatal(err)
	}
	other, _, _ := connect(t, s)
	if _, there, err := other.Exists(t.Context(), "/e", false); there || err != nil {
		t.Errorf("the ephemeral after the end of the session: %v, %v", there, err)
	}
}

// TestDetach_Requests: a request that waits for its reply has an unknown outcome, and a request
// that waits for a connection is never sent.
func TestDetach_Requests(t *testing.T) {
	for _, c := range []struct {
		name    string
		unknown bool
	}{{"waits for its reply", true}, {"waits for a connection", false}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				connections, sent := 0, 0
				f := &fake{}
				f.handshake = func(r proto.ConnectRequest) []byte {
					if connections++; connections > 1 {
						return nil
					}
					return welcome(r)
				}
				f.answer = func(h proto.RequestHeader, _ []byte) []byte {
					if h.Op == proto.OpSync {
						return nil // closes the connection
					}
					sent++
					return []byte{}
				}
				cl, _ := connectFake(t, f)
				if !c.unknown {
					if _, err := cl.Sync(t.Context(), "/"); !errors.Is(err, proto.ErrConnectionLoss) {
						t.Fatal(err)
					}
				}
				result := make(chan error)
				go func() { result <- cl.Delete(context.Background(), "/a", -1) }() // ends with Detach; received below
				synctest.Wait()
				cl.Detach()
				var failed *client.Error
				if err := <-result; !errors.As(err, &failed) || failed.Unknown != c.unknown || !errors.Is(err, client.ErrClosed) {
					t.Errorf("%v", err)
				}
				if c.unknown != (sent == 1) {
					t.Errorf("sent %d requests", sent)
				}
				if err := cl.Delete(t.Context(), "/a", -1); !errors.As(err, &failed) || failed.Unknown {
					t.Errorf("after Detach: %v", err)
				}
			})
		})
	}
}

// TestResume_Ended: a session that does not exist any more is not replaced by a new one, and no
// other server is asked for it.
func TestResume_Ended(t *testing.T) {
	var asked []proto.SessionID
	f := &fake{handshake: func(r proto.ConnectRequest) []byte {
		asked = append(asked, r.SessionID)
		return refusal
	}}
	_, err := client.Connect(t.Context(), client.Config{
		Servers: []string{"a:1", "b:1"}, Dial: f.Dial, Resume: &client.Session{ID: 5, Password: make([]byte, 16), Timeout: time.Minute},
	})
	f.all.Wait()
	if !errors.Is(err, proto.ErrSessionExpired) || !slices.Equal(asked, []proto.SessionID{5}) {
		t.Errorf("%v; asked for sessions %v", err, asked)
	}
}

// TestOnConnect: OnConnect gets the session of each connection before any request is sent there,
// also a request that waits. A server that OnConnect refuses is left without a request.
func TestOnConnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log []string
		connections := 0
		f := &fake{answer: polite(func(h proto.RequestHeader, _ []byte) []byte {
			log = append(log, h.Op.String())
			if h.Op == proto.OpSync {
				return nil // closes the connection
			}
			return reply(h.Xid, 1, proto.OK, make([]byte, proto.StatBytes))
		})}
		c, _ := connectFake(t, f, func(cfg *client.Config) {
			cfg.OnConnect = func(s client.Session) error {
				if s.ID != 77 || s.Timeout != 9*time.Second || s.Server != "fake:1" {
					t.Errorf("%+v", s)
				}
				if connections++; connections == 2 {
					log = append(log, "refused")
					return errDown
				}
				log = append(log, "accepted")
				return nil
			}
		})
		if _, err := c.Sync(t.Context(), "/"); !errors.Is(err, proto.ErrConnectionLoss) {
			t.Fatal(err)
		}
		if _, err := c.Set(t.Context(), "/a", nil, -1); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(log, " "); got != "accepted sync refused accepted setData" {
			t.Error(got)
		}
	})
}

// TestOnConnect_Refuses: the reason of OnConnect is in the error of Connect.
func TestOnConnect_Refuses(t *testing.T) {
	f := &fake{handshake: welcome, answer: polite(nil)}
	_, err := client.Connect(t.Context(), client.Config{
		Servers: []string{"fake:1"}, Dial: f.Dial, OnConnect: func(client.Session) error { return errDown },
	})
	f.all.Wait()
	if !errors.Is(err, errDown) || !strings.Contains(err.Error(), "fake:1: ") {
		t.Errorf("%v", err)
	}
}

// TestCreate_NoStat: NoStat sends the operation that ZooKeeper 3.4 knows. Containers and znodes
// with a TTL, which 3.4 has not, keep their operations.
func TestCreate_NoStat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent []proto.OpCode
		c, _ := connectFake(t, &fake{answer: polite(func(h proto.RequestHeader, _ []byte) []byte {
			sent = append(sent, h.Op)
			resp := proto.CreateResponse{Path: "/a"}
			return reply(h.Xid, 1, proto.OK, resp.Append(nil, h.Op))
		})})
		for _, o := range []client.CreateOptions{
			{}, {NoStat: true}, {NoStat: true, Ephemeral: true}, {NoStat: true, Sequential: true},
			{NoStat: true, Container: true}, {NoStat: true, TTL: time.Second},
		} {
			created, stat, err := c.Create(t.Context(), "/a", nil, o)
			if err != nil || created != "/a" || stat != (proto.Stat{}) {
				t.Errorf("%+v: %q, %+v, %v", o, created, stat, err)
			}
		}
		want := []proto.OpCode{proto.OpCreate2, proto.OpCreate, proto.OpCreate, proto.OpCreate, proto.OpCreateContainer, proto.OpCreateTTL}
		if !slices.Equal(sent, want) {
			t.Errorf("sent %v, want %v", sent, want)
		}
		s := startServer(t, server.Config{})
		real, _, _ := connect(t, s)
		created, stat, err := real.Create(t.Context(), "/n", []byte("x"), client.CreateOptions{NoStat: true, Sequential: true})
		if err != nil || created != "/n0000000000" || stat != (proto.Stat{}) {
			t.Errorf("%q, %+v, %v", created, stat, err)
		}
	})
}

// TestResume_FailedConnect: a Connect that fails after the server has resumed the session, here for
// want of an answer to its credentials, returns when its ctx ends and does not end the session.
func TestResume_FailedConnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ops []proto.OpCode
		f := &fake{handshake: welcome, answer: func(h proto.RequestHeader, _ []byte) []byte {
			ops = append(ops, h.Op)
			return []byte{}
		}}
		defer f.all.Wait()
		for _, resume := range []*client.Session{nil, {ID: 77, Password: make([]byte, 16), Timeout: 9 * time.Second}} {
			const wait = 100 * time.Millisecond
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			defer cancel()
			begun := time.Now()
			_, err := client.Connect(ctx, client.Config{
				Servers: []string{"fake:1"}, Dial: f.Dial, Resume: resume, Auths: []client.Auth{{Scheme: "digest", Credential: []byte("a:b")}},
			})
			if took := time.Since(begun); err == nil || took != wait {
				t.Errorf("%v after %v, want an error after %v", err, took, wait)
			}
			synctest.Wait()
			if slices.Contains(ops, proto.OpCloseSession) {
				t.Errorf("the session is ended: %v", ops)
			}
		}
	})
}

// TestDetach_DuringClose: Detach waits for a Close whose answer does not come, and lets virtual
// time pass meanwhile.
func TestDetach_DuringClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := connectFake(t, &fake{answer: func(proto.RequestHeader, []byte) []byte { return []byte{} }})
		result := make(chan error)
		go func() { result <- c.Close() }() // ends after ConnectTimeout; received below
		synctest.Wait()
		c.Detach()
		if err := <-result; err == nil {
			t.Error("the server has not answered, and Close has no error")
		}
	})
}
