package server

import (
	"testing"
	"time"

	"github.com/gozkd/gozkd/proto"
)

// What the sample costs a request of a busy server, of which few are kept, and one that is kept.
func BenchmarkHot(b *testing.B) {
	body := (&proto.PathWatchRequest{Path: "/app/config/current"}).Append(nil)
	for _, name := range []string{"busy", "kept"} {
		b.Run(name, func(b *testing.B) {
			c := &conn{server: &Server{begun: time.Now()}, session: 1}
			b.ReportAllocs()
			for b.Loop() {
				if name == "kept" {
					c.server.hot.every.Store(0) // it rises
				}
				c.noteHot(proto.OpGetData, body)
			}
		})
	}
}
