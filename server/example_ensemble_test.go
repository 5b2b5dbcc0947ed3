package server_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"sync"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/server"
)

// Three members in one program, with TLS between them and for clients. In several programs each
// member gets the same lines and its own number and certificate.
func Example_ensemble() {
	const members = 3
	own, pool := certificate("localhost")
	secured := &tls.Config{Certificates: []tls.Certificate{own}, ClientCAs: pool, RootCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert}
	dials := func(host string) *tls.Config {
		return &tls.Config{Certificates: []tls.Certificate{own}, RootCAs: pool, ServerName: host}
	}

	// The members know each other by the addresses of listeners that exist already.
	var lines []string
	var peers []net.Listener
	for id := 1; id <= members; id++ {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			log.Fatal(err)
		}
		peers = append(peers, l)
		lines = append(lines, fmt.Sprintf("server.%d=localhost:%d:3888", id, l.Addr().(*net.TCPAddr).Port))
	}
	var all []*server.Server
	for id := 1; id <= members; id++ {
		s, err := server.New(server.Config{
			MemberID: uint8(id), Members: lines, PeerListener: peers[id-1], // and Dir, to keep the state
			PeerTLS:   server.PeerTLS{Mode: server.PeerTLSRequired, Server: secured, Client: dials},
			InProcess: true, SecureListen: "127.0.0.1:0", TLS: secured,
		})
		if err != nil {
			log.Fatal(err)
		}
		all = append(all, s)
	}
	errs := make([]error, members) // Start waits for an election, so the members start together
	var started sync.WaitGroup
	for i, s := range all {
		started.Go(func() { errs[i] = errors.Join(s.Start(context.Background()), s.Ready(context.Background())) })
	}
	started.Wait()
	if err := errors.Join(errs...); err != nil {
		log.Fatal(err)
	}

	var servers []string
	for _, s := range all {
		servers = append(servers, s.SecureAddr().String())
	}
	c, err := client.Connect(context.Background(), client.Config{Servers: servers, Dial: client.DialTLS(dials("localhost"), nil)})
	if err != nil {
		log.Fatal(err)
	}
	created, _, err := c.Create(context.Background(), "/app", nil, client.CreateOptions{})
	fmt.Println(created, err)
	for _, m := range all[0].Facts().Members() {
		if m.ID != all[0].Status().Member {
			fmt.Println(m.ID, m.LinkTo)
		}
	}
	fmt.Println(errors.Join(c.Close(), all[0].Close(), all[1].Close(), all[2].Close()))
	// Output:
	// /app <nil>
	// 2 TLS 1.3
	// 3 TLS 1.3
	// <nil>
}
