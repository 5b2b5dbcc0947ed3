package server_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/server"
)

func Example() {
	s, err := server.New(server.Config{}) // in memory, on a free port of the loopback
	if err != nil {
		log.Fatal(err)
	}
	if err := s.Start(context.Background()); err != nil { // it serves when Start returns
		log.Fatal(err)
	}
	defer s.Close()

	conn, _, err := zk.Connect([]string{s.ConnectString()}, 10*time.Second, zk.WithLogInfo(false))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Create("/color", []byte("green"), 0, zk.WorldACL(zk.PermAll)); err != nil {
		log.Fatal(err)
	}
	data, stat, err := conn.Get("/color")
	fmt.Printf("%s, version %d, %v\n", data, stat.Version, err)
	// Output: green, version 0, <nil>
}

// New reports all errors of a Config at once, before anything runs.
func ExampleNew() {
	_, err := server.New(server.Config{MaxBuffer: 1, SnapCount: -1})
	fmt.Println(err)
	// Output:
	// server: SnapCount is -1, it must be 1 or more
	// server: MaxBuffer is 1, allowed are 1024 to 268435456
}

// Clients in the same process need no port.
func ExampleServer_Dialer() {
	s, err := server.New(server.Config{InProcess: true})
	if err != nil {
		log.Fatal(err)
	}
	if err := s.Start(context.Background()); err != nil {
		log.Fatal(err)
	}
	defer s.Close()

	conn, _, err := zk.Connect([]string{s.ConnectString()}, 10*time.Second, zk.WithDialer(s.Dialer()), zk.WithLogInfo(false))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	children, _, err := conn.Children("/")
	fmt.Println(s.Addr(), children, err)
	// Output: <nil> [zookeeper] <nil>
}

// A server that stops by itself reports the reason, and answers no client. When the reason is
// removed, a new server has everything that was acknowledged.
func ExampleServer_Err() {
	s, err := server.New(server.Config{})
	if err != nil {
		log.Fatal(err)
	}
	if err := s.Start(context.Background()); err != nil {
		log.Fatal(err)
	}
	stop := make(chan struct{}) // whatever ends your program
	close(stop)
	select {
	case err := <-s.Err():
		fmt.Println("stopped by itself:", err)
	case <-stop:
		fmt.Println("stopped by us")
	}
	fmt.Println(s.Close())
	// Output:
	// stopped by us
	// <nil>
}

// A server without a directory passes its state to the next one.
func ExampleMemory() {
	var memory server.Memory
	for life := range 3 {
		s, err := server.New(server.Config{Memory: &memory, InProcess: true})
		if err != nil {
			log.Fatal(err)
		}
		if err := s.Start(context.Background()); err != nil {
			log.Fatal(err)
		}
		if err := s.Load(context.Background(), map[string][]byte{fmt.Sprintf("/lives/%d", life): nil}); err != nil {
			log.Fatal(err)
		}
		var paths []string
		s.Walk("/lives", func(z server.Znode) bool {
			paths = append(paths, z.Path)
			return true
		})
		fmt.Println(paths)
		if err := s.Close(); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// [/lives /lives/0]
	// [/lives /lives/0 /lives/1]
	// [/lives /lives/0 /lives/1 /lives/2]
}

// Three members in one process. Each has a listener for the others, which is opened first, so that
// all know the addresses.
func ExampleConfig_ensemble() {
	var listeners []net.Listener
	var members []string
	for id := 1; id <= 3; id++ {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			log.Fatal(err)
		}
		listeners = append(listeners, l)
		// As in zoo.cfg. No election port is opened: elections go over the first one.
		members = append(members, fmt.Sprintf("server.%d=%s:1:participant;127.0.0.1:1", id, l.Addr()))
	}
	started := make(chan error)
	var servers []*server.Server
	for i, l := range listeners {
		s, err := server.New(server.Config{MemberID: uint8(i + 1), Members: members, PeerListener: l, Listen: "127.0.0.1:0"})
		if err != nil {
			log.Fatal(err)
		}
		defer s.Close()
		servers = append(servers, s)
		go func() { started <- s.Start(context.Background()) }() // returns when there is a leader, so all must start at once
	}
	for range servers {
		if err := <-started; err != nil {
			log.Fatal(err)
		}
	}
	if err := servers[0].Load(context.Background(), map[string][]byte{"/color": []byte("green")}); err != nil {
		log.Fatal(err)
	}
	for _, s := range servers {
		if err := s.CatchUp(context.Background()); err != nil {
			log.Fatal(err)
		}
		s.Walk("/color", func(z server.Znode) bool {
			fmt.Printf("member %d: %s\n", s.Status().Member, z.Data)
			return true
		})
	}
	// Output:
	// member 1: green
	// member 2: green
	// member 3: green
}
