package client_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/server"
)

// BenchmarkGet reads 100 bytes; requests of several callers share the connection.
func BenchmarkGet(b *testing.B) {
	s := startServer(b, server.Config{})
	c, _, _ := connect(b, s)
	if _, _, err := c.Create(b.Context(), "/a", make([]byte, 100), client.CreateOptions{}); err != nil {
		b.Fatal(err)
	}
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			b.ReportAllocs()
			var all sync.WaitGroup
			for i := range callers {
				all.Go(func() {
					for range b.N/callers + min(1, max(0, b.N%callers-i)) {
						if _, _, err := c.Get(b.Context(), "/a", false); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			all.Wait()
		})
	}
}

// BenchmarkReconnect breaks a connection and resumes the session on the next.
func BenchmarkReconnect(b *testing.B) {
	s := startServer(b, server.Config{})
	_, e, w := connect(b, s)
	e.awaitState(b, client.Connected)
	for b.Loop() {
		w.Break(false)
		e.awaitState(b, client.Connected)
	}
}
