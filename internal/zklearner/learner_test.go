package zklearner

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/internal/neterr"
	"github.com/gozkd/gozkd/internal/tcpport"
	"github.com/gozkd/gozkd/proto"
)

// server is a server of ZooKeeper that leads while it has something to send.
type server struct {
	l    net.Listener
	send chan []byte // what is sent next; a nil ends the connection
	from chan Packet // what the learner sends
}

func listen(t *testing.T) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{l: l, send: make(chan []byte), from: make(chan Packet, 100)}
	done := make(chan struct{})
	// Ends with the listener; the cleanup waits for it.
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.lead(c)
		}
	}()
	t.Cleanup(func() {
		_ = l.Close() // it may be closed
		close(s.send)
		<-done
	})
	return s
}

// lead sends what it is told to on a connection.
func (s *server) lead(c net.Conn) {
	over := make(chan struct{})
	// Ends with the connection, and is awaited below.
	go func() {
		defer close(over)
		for in := bufio.NewReader(c); ; {
			p, err := ReadPacket(in)
			if err != nil {
				return
			}
			s.from <- p
		}
	}()
	for b := range s.send {
		if b == nil {
			break
		}
		_, _ = c.Write(b) // the learner may be gone
	}
	_ = c.(*net.TCPConn).CloseWrite() // the learner may be gone
	<-over
	_ = c.Close() // everything was exchanged
}

// await returns the next status that fits.
func await(t *testing.T, changes <-chan Status, fits func(Status) bool) Status {
	t.Helper()
	for {
		select {
		case s := <-changes:
			if fits(s) {
				return s
			}
		case <-time.After(time.Minute):
			t.Fatal("the status does not change")
		}
	}
}

// A learner finds the leader among the servers, follows the next one, and goes on where it was.
func TestLearner_FollowsTheNextLeader(t *testing.T) {
	src := sample(t)
	first, second := listen(t), listen(t)
	changes := make(chan Status, 100)
	closed, err := tcpport.Reserve("127.0.0.1:0") // a follower does not listen
	if err != nil {
		t.Fatal(err)
	}
	defer closed.Release()
	l := New(Config{Servers: []string{closed.Address(), first.l.Addr().String(), second.l.Addr().String()}, Retry: time.Millisecond,
		Changed: func(s Status) { changes <- s }})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()

	for _, b := range [][]byte{leads(1), packet(Diff, 0, nil), committed(src.records[0]), settles(1), packet(Ping, 0x100000003, nil), inform(src.records[1])} {
		first.send <- b
	}
	st := await(t, changes, func(s Status) bool { return s.Leader == first.l.Addr().String() })
	if st.Zxid != 0x100000001 || st.Leaders != 1 || len(st.Ensemble.Voters) != 2 {
		t.Errorf("%+v", st)
	}
	first.send <- nil
	// Not l.Status(): the next connection may have begun.
	st = await(t, changes, func(s Status) bool { return s.Leader == "" && errors.Is(s.Why, io.EOF) })
	if st.Zxid != 0x100000002 || st.Announced != 0x100000003 || st.Lag() != 1 || st.Sessions != 1 {
		t.Errorf("%+v, lag %d", st, st.Lag())
	}
	for _, b := range [][]byte{leads(2), packet(Diff, 0, nil), committed(src.records[2]), committed(src.records[3]), settles(2)} {
		second.send <- b
	}
	st = await(t, changes, func(s Status) bool { return s.Leader != "" })
	if st.Leader != second.l.Addr().String() || st.Zxid != src.state.Last() || st.Znodes != src.state.Tree().NumZnodes() || st.Compared != 3 {
		t.Errorf("%+v", st)
	}
	for p := range second.from {
		if p.Type == AckEpoch {
			if p.Zxid != 0x100000002 {
				t.Errorf("goes on at %v", p.Zxid)
			}
			break
		}
	}
	if err := second.l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := first.l.Close(); err != nil {
		t.Fatal(err)
	}
	second.send <- nil
	err = l.Do(ctx, func(r *Replica) error {
		mustEqual(t, r, src)
		tree, _, err := r.Finish()
		if err == nil && tree.LastZxid() != proto.MakeZxid(2, 0) {
			t.Errorf("the last zxid is %v", tree.LastZxid())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A difference ends Run, also one that Do finds.
func TestLearner_EndsWithADifference(t *testing.T) {
	src, s := sample(t), listen(t)
	src.records[1].Digest++
	l := New(Config{Servers: []string{s.l.Addr().String()}})
	done := make(chan error, 1)
	go func() { done <- l.Run(t.Context()) }()
	for _, b := range [][]byte{leads(1), packet(Diff, 0, nil), settles(1), inform(src.records[0]), inform(src.records[1])} {
		s.send <- b
	}
	if err := <-done; !errors.Is(err, ErrDiffers) {
		t.Error(err)
	}
	l = New(Config{})
	go func() { done <- l.Run(t.Context()) }()
	if err := l.Do(t.Context(), func(*Replica) error { return errors.New("no difference") }); err == nil {
		t.Error("Do returned no error")
	}
	if err := l.Do(t.Context(), func(*Replica) error { return ErrDiffers }); !errors.Is(err, ErrDiffers) {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, ErrDiffers) {
		t.Error(err)
	}
}

// A server that says nothing is given up soon. A leader may be silent for longer between packets.
func TestTimedConn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer near.Close() //nolint:errcheck // in memory
		defer far.Close()  //nolint:errcheck // in memory
		c, begun := &timedConn{near, neterr.FirstAnswer, 30 * time.Second}, time.Now()
		if _, err := c.Read(make([]byte, 1)); time.Since(begun) != 5*time.Second || err == nil || err.Error() != "no answer within 5s" {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		time.AfterFunc(29*time.Second, func() { _, _ = far.Write([]byte{1}) }) // the reader notices
		if n, err := c.Read(make([]byte, 1)); n != 1 || err != nil {
			t.Errorf("%d bytes, %v", n, err)
		}
	})
}
