package main

import (
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/internal/testkit/rawclient"
	"github.com/gozkd/gozkd/proto"
)

// connectAttacks begin connections and sessions, and use them up.
func connectAttacks() []*attack {
	return []*attack{
		{name: "connect-flood", what: "connects and disconnects, many addresses, 16 threads", run: connectFlood},
		{name: "refused-flood", what: "60 idle connections of an address, and more connects", run: refusedFlood},
		{name: "garbage-flood", what: "refused handshakes, many addresses, 16 threads", run: garbageFlood},
		{name: "wrong-password", what: "unknown sessions and wrong passwords, 8 threads", writes: 100, run: wrongPassword},
		{name: "session-flood", what: "abandoned sessions, 60 threads", run: sessionFlood},
		{name: "descriptors", what: "2,000 idle connections to a server with 256 descriptors", files: 256,
			keys: map[string]string{"snapCount": "100"}, run: descriptors},
	}
}

func connectFlood(a *attacker) {
	a.ready()
	var n atomic.Int64
	began := time.Now()
	a.each(16, func(int) {
		for a.ctx.Err() == nil {
			nc, err := a.dial(a.Addrs[0])
			if err != nil {
				return
			}
			_ = nc.SetLinger(0) // no port of ours stays in TIME_WAIT
			_ = nc.Close()      // as intended
			n.Add(1)
		}
	})
	a.running.Wait()
	a.note("%.0f connects/s", float64(n.Load())/time.Since(began).Seconds())
}

func refusedFlood(a *attacker) {
	const address = 12345
	dial := func() (*rawclient.Conn, error) {
		nc, err := a.dialFrom(a.Addrs[0], address)
		if err != nil {
			return nil, err
		}
		_ = nc.SetLinger(0) // no port of ours stays in TIME_WAIT
		return rawclient.New(nc), nil
	}
	a.ready()
	var n atomic.Int64
	began := time.Now()
	a.each(60, func(int) {
		if c, err := dial(); err == nil {
			defer func() { _ = c.Close() }() // nothing was sent
			hello := &proto.ConnectRequest{TimeoutMs: 30000, Passwd: make([]byte, proto.PasswdBytes)}
			if _, err := c.Handshake(hello, patience); err == nil {
				_, _ = c.ReadFrame(time.Minute) // until the server closes the connection or the attack ends
			}
		}
		a.sleep(200 * time.Millisecond)
	})
	a.sleep(500 * time.Millisecond)
	a.each(8, func(int) {
		for a.ctx.Err() == nil {
			c, err := dial()
			if err != nil {
				return
			}
			_, _ = c.ReadFrame(100 * time.Millisecond) // until the server closes the connection
			_ = c.Close()                              // as intended
			n.Add(1)
		}
	})
	a.running.Wait()
	a.note("%.0f connects/s", float64(n.Load())/time.Since(began).Seconds())
}

func garbageFlood(a *attacker) {
	garbage := [][]byte{
		append(header(0xffffffff), "garbage"...),
		append(header(0x7fffffff), "garbage"...),
		append(header(3), "abc"...),
		append(header(8), "12345678"...),
		[]byte("GET / HTTP/1.1\r\n\r\n"),
	}
	a.ready()
	a.each(16, func(i int) {
		for k := i; a.ctx.Err() == nil; k++ {
			nc, err := a.dial(a.Addrs[0])
			if err != nil {
				return
			}
			_ = nc.SetLinger(0) // no port of ours stays in TIME_WAIT
			c := rawclient.New(nc)
			if c.Write(garbage[k%len(garbage)], time.Second) == nil {
				_, _ = c.ReadFrame(20 * time.Millisecond) // until the server closes the connection
			}
			_ = c.Close() // as intended
		}
	})
}

func wrongPassword(a *attacker) {
	const address = 23456
	known := a.prepare() // a session that exists
	nc := must.Get(a.dialFrom(a.Addrs[0], address))
	session := must.Get(rawclient.New(nc).Handshake(&proto.ConnectRequest{TimeoutMs: 30000, Passwd: make([]byte, proto.PasswdBytes)}, patience))
	must.Do(known.Close())
	a.ready()
	var n atomic.Int64
	began := time.Now()
	a.each(8, func(i int) {
		r := rand.New(rand.NewPCG(uint64(i), 2))
		for a.ctx.Err() == nil {
			nc, err := a.dialFrom(a.Addrs[0], address)
			if err != nil {
				return
			}
			_ = nc.SetLinger(0) // no port of ours stays in TIME_WAIT
			c := rawclient.New(nc)
			hello := &proto.ConnectRequest{TimeoutMs: 30000, SessionID: session.SessionID, Passwd: []byte("0123456789abcdef")}
			if r.IntN(2) == 0 {
				hello.SessionID = proto.SessionID(r.Int64())
			}
			if _, err := c.Handshake(hello, time.Second); err == nil {
				n.Add(1)
			}
			_ = c.Close() // as intended
		}
	})
	a.running.Wait()
	a.note("%.0f attempts/s answered", float64(n.Load())/time.Since(began).Seconds())
}

func sessionFlood(a *attacker) {
	a.ready()
	var n atomic.Int64
	began := time.Now()
	a.each(60, func(int) {
		for a.ctx.Err() == nil {
			nc, err := a.dial(a.Addrs[0])
			if err != nil {
				return
			}
			_ = nc.SetLinger(0) // no port of ours stays in TIME_WAIT
			c := rawclient.New(nc)
			resp, err := c.Handshake(&proto.ConnectRequest{TimeoutMs: 40000, Passwd: make([]byte, proto.PasswdBytes)}, 5*time.Second)
			_ = c.Close() // the session stays
			if err != nil {
				return
			}
			if resp.TimeoutMs > 0 {
				n.Add(1)
			}
		}
	})
	a.running.Wait()
	a.note("%.0f sessions/s", float64(n.Load())/time.Since(began).Seconds())
}

func descriptors(a *attacker) {
	a.ready()
	a.hold(2000, nil, func(func([]byte) error) {})
}

// wordAttacks use the four-letter words.
func wordAttacks() []*attack {
	return []*attack{
		{name: "words", what: "2,000 words cons, hardly read, beside 200 sessions", run: words},
	}
}

func words(a *attacker) {
	var open []*stranger
	for range 200 {
		open = append(open, a.prepare())
	}
	a.ready()
	words := strings.Fields("cons cons cons wchp dump mntr")
	a.each(2000, func(i int) {
		nc, err := a.dial(a.Addrs[0])
		if err != nil {
			return
		}
		defer func() { _ = nc.Close() }() // as intended
		_ = nc.SetReadBuffer(1024)        // it is only a wish
		if _, err := nc.Write([]byte(words[i%len(words)])); err != nil {
			return
		}
		b := make([]byte, 256)
		for a.ctx.Err() == nil {
			if i%2 == 0 { // the others never read
				if _, err := nc.Read(b); err != nil {
					return
				}
			}
			a.sleep(100 * time.Millisecond)
			if i%2 != 0 && a.closedByServer(nc.Write) {
				return
			}
		}
	})
	a.running.Wait()
	for _, s := range open {
		_ = s.Close() // the attack is over
	}
}

// closedByServer reports whether a write fails.
func (a *attacker) closedByServer(write func([]byte) (int, error)) bool {
	_, err := write([]byte("x"))
	return err != nil
}
