package main

import (
	"errors"
	"math/rand/v2"
	"net"
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

// rate repeats act in n goroutines until the attack ends, and notes how often per second it
// counted. After an error of act there is a pause.
func (a *attacker) rate(what string, n int, act func(i int) (counts bool, err error)) {
	var count atomic.Int64
	began := time.Now()
	a.each(n, func(i int) {
		for a.ctx.Err() == nil {
			counts, err := act(i)
			if err != nil {
				return
			}
			if counts {
				count.Add(1)
			}
		}
	})
	a.running.Wait()
	a.note("%.0f %s", float64(count.Load())/time.Since(began).Seconds(), what)
}

func connectFlood(a *attacker) {
	a.ready()
	a.rate("connects/s", 16, func(int) (bool, error) {
		c, err := a.brief(-1)
		if err != nil {
			return false, err
		}
		return true, c.Close()
	})
}

func refusedFlood(a *attacker) {
	const address = 12345
	a.ready()
	a.each(60, func(int) {
		if c, err := a.brief(address); err == nil {
			defer func() { _ = c.Close() }() // nothing was sent
			if _, err := c.Handshake(rawclient.NewSession(sessionTimeoutMs), patience); err == nil {
				_, _ = c.ReadFrame(time.Minute) // until the server closes the connection or the attack ends
			}
		}
		a.sleep(200 * time.Millisecond)
	})
	a.sleep(500 * time.Millisecond)
	a.rate("connects/s", 8, func(int) (bool, error) {
		c, err := a.brief(address)
		if err != nil {
			return false, err
		}
		_, _ = c.ReadFrame(100 * time.Millisecond) // until the server closes the connection
		return true, c.Close()
	})
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
			c, err := a.brief(-1)
			if err != nil {
				return
			}
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
	c := must.Get(a.brief(address))
	session := must.Get(c.Handshake(rawclient.NewSession(sessionTimeoutMs), patience))
	must.Do(known.Close())
	a.ready()
	a.rate("attempts/s answered", 8, func(i int) (bool, error) {
		c, err := a.brief(address)
		if err != nil {
			return false, err
		}
		hello := rawclient.NewSession(sessionTimeoutMs)
		hello.SessionID, hello.Passwd = session.SessionID, []byte("0123456789abcdef")
		if rand.IntN(2) == 0 {
			hello.SessionID = proto.SessionID(rand.Int64())
		}
		_, err = c.Handshake(hello, time.Second)
		return err == nil, c.Close()
	})
}

func sessionFlood(a *attacker) {
	a.ready()
	a.rate("sessions/s", 60, func(int) (bool, error) {
		c, err := a.brief(-1)
		if err != nil {
			return false, err
		}
		resp, err := c.Handshake(rawclient.NewSession(40_000), 5*time.Second)
		return resp.TimeoutMs > 0, errors.Join(err, c.Close()) // the session stays
	})
}

func descriptors(a *attacker) {
	a.ready()
	a.hold(2000, nil)
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
		a.withConn(a.Addrs[0], 0, func(nc *net.TCPConn) {
			_ = nc.SetReadBuffer(1024) // it is only a wish
			_, err := nc.Write([]byte(words[i%len(words)]))
			for b := make([]byte, 256); err == nil && a.ctx.Err() == nil; {
				if i%2 == 0 { // the others never read
					if _, err = nc.Read(b); err != nil {
						return
					}
				}
				a.sleep(100 * time.Millisecond)
				if i%2 != 0 {
					_, err = nc.Write([]byte("x")) // fails once the server has closed the connection
				}
			}
		})
	})
	a.running.Wait()
	for _, s := range open {
		_ = s.Close() // the attack is over
	}
}
