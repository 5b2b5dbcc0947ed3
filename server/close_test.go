package server_test

import (
	"bytes"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/pipenet"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// Clients that disappear in any state leave no connections or watches.
func TestVanish(t *testing.T) {
	s := start(t, server.Config{Words: []string{"*"}, MaxClientConns: -1})
	dial := func() *raw {
		nc, err := net.Dial("tcp", s.ConnectString())
		if err != nil {
			t.Fatal(err)
		}
		return &raw{t: t, nc: nc}
	}
	hello := frameOf((&proto.ConnectRequest{TimeoutMs: 40_000}).Append(nil))
	watch := frame(1, proto.OpExists, &proto.PathWatchRequest{Path: "/none", Watch: true})
	write := frame(1, proto.OpCreate, create{path: "/v"})
	for i := range 400 {
		c := dial()
		switch i % 8 {
		case 1:
			_, _ = c.nc.Write(hello[:7])
		case 2:
			_, _ = c.nc.Write(hello)
		case 3:
			_, _ = c.nc.Write(append(hello[:len(hello):len(hello)], watch[:9]...))
		case 4:
			_, _ = c.nc.Write(append(hello[:len(hello):len(hello)], watch...))
		case 5: // the watch is set by a read that waits for writes
			_, _ = c.nc.Write(bytes.Join([][]byte{hello, write, write, watch, write, watch}, nil))
		case 6:
			_, _ = c.nc.Write(append(hello[:len(hello):len(hello)], bytes.Repeat(write, 100)...))
		case 7:
			_, _ = c.nc.Write([]byte("wchp"))
		}
		if i%3 == 0 {
			_ = c.nc.(*net.TCPConn).SetLinger(0) // a reset instead of an orderly end
		}
		_ = c.nc.Close()
	}
	for {
		c := dial()
		_, _ = c.nc.Write([]byte("mntr"))
		var b bytes.Buffer
		if _, err := b.ReadFrom(c.nc); err != nil {
			t.Fatal(err)
		}
		_ = c.nc.Close()
		has := func(line string) bool { return strings.Contains(b.String(), line) }
		// A connection counts no longer a moment before its watches are removed.
		if has("zk_num_alive_connections\t1\n") && has("zk_outstanding_requests\t0\n") && has("zk_watch_count\t0\n") {
			return
		}
	}
}

// Close in the middle of a burst ends every connection and returns.
func TestClose_DuringBurst(t *testing.T) {
	for range 5 {
		s := start(t, server.Config{OutstandingLimit: 100})
		var clients sync.WaitGroup
		running := make(chan struct{}, 20)
		for i := range 20 {
			// Ends when the server closes the connection.
			clients.Go(func() {
				nc, err := net.Dial("tcp", s.ConnectString())
				if err != nil {
					t.Error(err)
					return
				}
				defer func() { _ = nc.Close() }()
				b := bytes.Repeat(append(frame(1, proto.OpSetData, &proto.SetDataRequest{Path: "/", Version: -1}),
					frame(2, proto.OpGetChildren, &proto.PathWatchRequest{Path: "/", Watch: true})...), 100)
				if _, err := nc.Write(append(frameOf((&proto.ConnectRequest{TimeoutMs: 40_000}).Append(nil)), b...)); err != nil {
					t.Error(err)
					return
				}
				reads := make([]byte, 1000)
				if _, err := nc.Read(reads); err != nil {
					t.Error(err)
				}
				running <- struct{}{}
				for {
					if _, err := nc.Write(b); err != nil {
						return
					}
					if i%2 == 0 { // the others do not read replies and events
						if _, err := nc.Read(reads); err != nil {
							return
						}
					}
				}
			})
		}
		for range 20 {
			<-running
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		clients.Wait()
	}
}

// A server that closes answers the writes that it has taken. Abort does not.
func TestClose_AnswersWritesUnderWay(t *testing.T) {
	for _, abort := range []bool{false, true} {
		var d disk
		serverBubble(t, onDisk(t, &d), func(t *testing.T, s *server.Server, dial func() *raw) {
			c := dial()
			c.connect(40_000, 0, nil)
			resume := d.stall()
			c.writeAll(bytes.Join([][]byte{frame(1, proto.OpCreate, create{path: "/a"}), frame(2, proto.OpCreate, create{path: "/b"}),
				frame(3, proto.OpGetChildren, &proto.PathWatchRequest{Path: "/"})}, nil))
			synctest.Wait() // the server has taken them
			ended := make(chan error, 1)
			go func() {
				if abort {
					ended <- s.Abort()
				} else {
					ended <- s.Close()
				}
			}()
			synctest.Wait() // it waits for the disk
			resume(nil)
			answers, readErr := io.ReadAll(c.nc)
			if err := <-ended; err != nil || !abort && readErr != nil {
				t.Error(err, readErr)
			}
			if got := bytes.Count(answers, []byte("\x00\x00\x00\x02/")); abort == (got == 2) {
				t.Errorf("abort %v: %q", abort, answers)
			}
		})
	}
}

// lingering is a connection whose Close takes a while, as that of TLS does when its peer does not
// read.
type lingering struct{ net.Conn }

func (l lingering) Close() error {
	time.Sleep(5 * time.Second)
	return l.Conn.Close()
}

type lingeringListener struct{ net.Listener }

func (l lingeringListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return lingering{c}, err
}

// Closing one connection does not delay the others.
func TestClose_Lingers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := pipenet.Listen()
		cfg := ticks
		cfg.Listener = lingeringListener{l}
		start(t, cfg)
		dial := func() *raw {
			nc, err := l.Dial()
			if err != nil {
				t.Fatal(err)
			}
			return &raw{t: t, nc: nc}
		}
		good, first, second := dial(), dial(), dial()
		good.connect(60_000, 0, nil)
		first.connect(60_000, 0, nil)
		begin := time.Now()
		second.connect(60_000, first.id, first.pass) // closes the first
		good.call(1, proto.OpCreate, create{path: "/x"})
		if took := time.Since(begin); took != 0 {
			t.Errorf("a write took %v while another connection was being closed", took)
		}
	})
}
