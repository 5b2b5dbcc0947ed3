//go:build linux

package main

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/test/compat/server"
)

// benchStart measures from before the process is started, its zoo.cfg not yet written, to the answer to the first create
// of a new session. The data directory is new.
func benchStart(ctx context.Context, s *settings) error {
	var table [][]string
	for _, k := range s.servers {
		n := s.starts
		if k.name != "gozkd" {
			n = max(n/5, 3)
		}
		var took []time.Duration
		var name string
		for i := range n {
			d, product, err := startOnce(ctx, k)
			if err != nil {
				return err
			}
			progress("start %s %d/%d: %s", k.name, i+1, n, d)
			took, name = append(took, d), product
		}
		m := median(took) // sorts
		table = append(table, []string{name, fmt.Sprint(n), millis(m), millis(took[0]), millis(took[n-1])})
	}
	s.out.table("Start of the process to the first answered create (ms)", []string{"server", "starts", "median", "min", "max"}, table)
	return nil
}

func startOnce(ctx context.Context, k kind) (_ time.Duration, product string, err error) {
	port, err := freePort()
	if err != nil {
		return 0, "", err
	}
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	type answer struct {
		at  time.Time
		err error
	}
	stopped, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	answered := make(chan answer, 1)
	start := time.Now()
	// Ends with the first answer or with stopped; awaited below.
	go func() {
		for {
			err := firstCreate(addr)
			if err == nil || stopped.Err() != nil {
				answered <- answer{time.Now(), err}
				return
			}
			sleep(stopped, 200*time.Microsecond)
		}
	}()
	p, err := k.start(ctx, server.Options{Port: port, Keys: keys()})
	if err != nil {
		cancel()
		<-answered
		return 0, "", err
	}
	a := <-answered
	stopErr := p.Stop()
	if a.err != nil {
		return 0, "", a.err
	}
	return a.at.Sub(start), p.Name(), stopErr
}

func firstCreate(addr string) error {
	// ZooKeeper may take a connection before it can serve, and then never answers on it.
	const patience = time.Second
	c, err := dialImpatient(addr, 0, 1, patience)
	if err != nil {
		return err
	}
	err = c.call(proto.OpCreate, func(b []byte) []byte {
		return (&proto.CreateRequest{Path: "/first", Data: payload, ACL: openACL}).Append(b, proto.OpCreate)
	}, 0)
	if err != nil {
		return err
	}
	return c.close()
}

// freePort returns a port of 127.0.0.1 that nothing listened on a moment ago.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}
