package server_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// A server with few requests samples all of them, so the rates are exact.
func TestHot_Exact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := hotServer(t)
		if hot := s.Facts().Hot(); hot.Window != 0 || len(hot.Paths)+len(hot.Clients) != 0 {
			t.Errorf("in the first second: %+v", hot)
		}
		c.ask(proto.OpCreate, create{path: "/a", op: proto.OpCreate}.Append(nil))
		for range 4 {
			for range 5 {
				c.ask(proto.OpGetData, (&proto.PathWatchRequest{Path: "/a"}).Append(nil))
			}
			c.ask(proto.OpExists, (&proto.PathWatchRequest{Path: "/nope"}).Append(nil))
			c.ask(proto.OpSetData, (&proto.SetDataRequest{Path: "/a", Version: -1}).Append(nil))
			c.ask(proto.OpPing, nil)
			time.Sleep(time.Second) // of the bubble
		}
		c.ask(proto.OpMulti, (&proto.MultiRequest{Ops: []proto.MultiOp{
			{Op: proto.OpSetData, Path: "/a", Version: -1}, {Op: proto.OpCheck, Path: "/b", Version: -1},
		}}).Append(nil))
		time.Sleep(time.Second)
		hot := s.Facts().Hot()
		const want = "paths [{/a 4 1.2} {/nope 0.8 0} {/b 0 0.2}] window 5"
		if got := fmt.Sprintf("paths %v window %d", hot.Paths, hot.Window); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if len(hot.Clients) != 1 || hot.Clients[0].Reads != 4.8 || hot.Clients[0].Writes != 1.2 || hot.Clients[0].Session != c.id.String() {
			t.Errorf("clients %+v", hot.Clients)
		}
		if hot.Clients[0].Address == "" {
			t.Error("the client that is there has no address")
		}
		time.Sleep(11 * time.Second)
		if hot := s.Facts().Hot(); hot.Window != 10 || len(hot.Paths)+len(hot.Clients) != 0 {
			t.Errorf("after the window: %+v", hot)
		}
	})
}

// The word answers one line of JSON with the same content, with empty lists, and only if the
// whitelist has it.
func TestHot_Word(t *testing.T) {
	addr := start(t, server.Config{Words: []string{"hotp"}}).ConnectString()
	const want = `{"paths":[],"clients":[],"window_s":`
	got := ask(t, addr, "hotp")
	if !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "}\n") || !json.Valid([]byte(got)) {
		t.Errorf("%q, want %q", got, want)
	}
	addr = start(t, server.Config{Words: []string{"mntr"}}).ConnectString()
	if got := ask(t, addr, "hotp"); got != "hotp is not executed because it is not in the whitelist.\n" {
		t.Errorf("not listed: %q", got)
	}
}

// Clients' bytes appear in the answer cut off and as valid JSON, and a malformed path counts only
// for the client.
func TestHot_Hostile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := hotServer(t)
		for _, path := range []string{strings.Repeat("x", 100_000), strings.Repeat("é", 1000), "\xff\xfe\"\\\n", ""} {
			c.ask(proto.OpExists, (&proto.PathWatchRequest{Path: path}).Append(nil))
		}
		c.ask(proto.OpGetData, []byte{0x7f, 0xff, 0xff, 0xff})    // a false length
		c.ask(proto.OpGetData, []byte{0xff, 0xff, 0xff, 0xff, 0}) // null
		c.ask(proto.OpMulti, []byte{0, 0, 0, 99, 0, 0, 0, 0, 0})  // no such op
		c.ask(proto.OpMulti, (&proto.MultiRequest{}).Append(nil)) // of nothing
		c.ask(proto.OpMulti, (&proto.MultiRequest{Ops: []proto.MultiOp{{Op: proto.OpSetData, Path: "/big", Data: make([]byte, 8<<10)}}}).Append(nil))
		time.Sleep(time.Second)
		line := s.Facts().Hot().String()
		var back server.HotSpots
		if err := json.Unmarshal([]byte(line), &back); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if len(line) > 2000 || len(back.Paths) != 3 || len(back.Clients) != 1 || back.Clients[0].Reads != 6 || back.Clients[0].Writes != 3 {
			t.Errorf("%d bytes: %s", len(line), line)
		}
	})
}

// hotServer starts a server in the bubble of t and connects a client to it.
func hotServer(t *testing.T) (*server.Server, *raw) {
	t.Helper()
	s, err := server.New(server.Config{InProcess: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	nc, err := s.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = nc.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	c := &raw{t: t, nc: nc}
	c.connect(30000, 0, make([]byte, proto.PasswdBytes))
	return s, c
}

// ask sends a request and waits for its reply, whatever that is.
func (r *raw) ask(op proto.OpCode, body []byte) {
	r.t.Helper()
	r.send(append((&proto.RequestHeader{Xid: 7, Op: op}).Append(nil), body...))
	if r.recv() == nil {
		r.t.Fatalf("closed instead of a reply to %v", op)
	}
}

// A busy server samples a part, and its estimates are right within six standard deviations.
func TestHot_Estimates(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, c := hotServer(t)
		const perSecond, seconds, batch = 10_000, 10, 100
		chance := rand.New(rand.NewPCG(1, 2))
		asked := make(map[string]float64)
		for range seconds {
			for range perSecond / batch {
				var frames []byte
				for range batch {
					path := "/cold"
					if chance.IntN(10) > 0 {
						path = fmt.Sprintf("/hot%d", chance.IntN(3))
					}
					asked[path] += 1.0 / seconds
					frames = appendFrame(frames, proto.OpExists, (&proto.PathWatchRequest{Path: path}).Append(nil))
				}
				if _, err := c.nc.Write(frames); err != nil {
					t.Fatal(err)
				}
				for range batch {
					if c.recv() == nil {
						t.Fatal("closed")
					}
				}
			}
			time.Sleep(time.Second)
		}
		hot := s.Facts().Hot()
		if len(hot.Paths) != 4 || hot.Paths[3].Path != "/cold" || len(hot.Clients) != 1 || hot.Window != seconds {
			t.Fatalf("%v", hot)
		}
		// A second keeps between 512/2 and 1,024 samples, so the window at least 2,560.
		near := func(what string, is, want, kept float64) {
			if off := 6 / math.Sqrt(kept*want/perSecond); math.Abs(is-want) > want*off {
				t.Errorf("%s: %.1f per second, the true rate is %.1f; the error is more than %.0f %%", what, is, want, 100*off)
			}
		}
		for _, p := range hot.Paths {
			near(p.Path, p.Reads, asked[p.Path], 2560)
		}
		near("the client", hot.Clients[0].Reads, perSecond, 2560)
	})
}

func appendFrame(b []byte, op proto.OpCode, body []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(proto.RequestHeaderBytes+len(body)))
	return append((&proto.RequestHeader{Xid: 7, Op: op}).Append(b), body...)
}

// BenchmarkRead measures a pipelined read, including the sampling.
func BenchmarkRead(b *testing.B) {
	s, err := server.New(server.Config{InProcess: true})
	if err != nil {
		b.Fatal(err)
	}
	if err := s.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	nc, err := s.Dial(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		_ = nc.Close()
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	}()
	c := &raw{t: b, nc: nc}
	c.connect(30000, 0, make([]byte, proto.PasswdBytes))
	const batch = 100
	var frames []byte
	for range batch {
		frames = appendFrame(frames, proto.OpGetData, (&proto.PathWatchRequest{Path: "/zookeeper/config"}).Append(nil))
	}
	c.ask(proto.OpGetData, (&proto.PathWatchRequest{Path: "/zookeeper"}).Append(nil))
	c.send(frames[4 : 4+proto.RequestHeaderBytes+4+len("/zookeeper/config")+1])
	replies := make([]byte, batch*(4+len(c.recv())))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := nc.Write(frames); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(nc, replies); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/request")
}
