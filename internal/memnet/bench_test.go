package memnet_test

import (
	"io"
	"net"
	"testing"

	"github.com/gozkd/gozkd/internal/memnet"
)

// kinds are the kinds of connections within the process, and TCP for comparison.
var kinds = []struct {
	name string
	dial func(b *testing.B) (client, server net.Conn)
}{
	{"pipe", func(*testing.B) (_, _ net.Conn) { return memnet.Pipe("client", "server") }},
	{"network", func(b *testing.B) (_, _ net.Conn) { return connect(b, memnet.New(0)) }},
	{"tcp", func(b *testing.B) (_, _ net.Conn) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = l.Close() }() // once
		client, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			b.Fatal(err)
		}
		server, err := l.Accept()
		if err != nil {
			b.Fatal(err)
		}
		return client, server
	}},
}

// One client sends a frame and waits for the reply.
func BenchmarkRoundTrip(b *testing.B) {
	for _, kind := range kinds {
		b.Run(kind.name, func(b *testing.B) {
			client, server := kind.dial(b)
			done := make(chan struct{})
			go func() { // ends with the client's Close; awaited below
				defer close(done)
				frame := make([]byte, 100)
				for {
					if _, err := io.ReadFull(server, frame); err != nil {
						return
					}
					if _, err := server.Write(frame); err != nil {
						return
					}
				}
			}()
			frame := make([]byte, 100)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := client.Write(frame); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(client, frame); err != nil {
					b.Fatal(err)
				}
			}
			closeAll(client)
			<-done
			closeAll(server)
		})
	}
}

// One end writes, the other reads like a buffered reader.
func BenchmarkThroughput(b *testing.B) {
	for _, kind := range kinds {
		for _, size := range []struct {
			name  string
			bytes int
		}{{"100B", 100}, {"64KiB", 64 << 10}} {
			b.Run(kind.name+"/"+size.name, func(b *testing.B) {
				client, server := kind.dial(b)
				done := make(chan struct{})
				go func() { // ends with the client's Close; awaited below
					defer close(done)
					buf := make([]byte, 64<<10)
					for {
						if _, err := server.Read(buf); err != nil {
							return
						}
					}
				}()
				frame := make([]byte, size.bytes)
				b.SetBytes(int64(size.bytes))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := client.Write(frame); err != nil {
						b.Fatal(err)
					}
				}
				closeAll(client)
				<-done
				closeAll(server)
			})
		}
	}
}
