package recipes_test

import (
	"context"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/zktest"
)

func connect(b *testing.B) (*recipes.Client, *zk.Conn) {
	b.Helper()
	s := zktest.Start(b)
	s.Load(map[string]string{"/a": "x"})
	c, err := recipes.Connect(b.Context(), []string{s.ConnectString()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := c.Close(); err != nil {
			b.Error(err)
		}
	})
	return c, s.Connect(b)
}

// BenchmarkSession_Err measures a look at whether the session is alive.
func BenchmarkSession_Err(b *testing.B) {
	c, _ := connect(b)
	ctx := c.Session().Context()
	b.ReportAllocs()
	for b.Loop() {
		if ctx.Err() != nil {
			b.Fatal("lost")
		}
	}
}

// BenchmarkGet measures a read with a context that can end, with one that cannot, and with
// go-zookeeper alone, over TCP on the loopback interface.
func BenchmarkGet(b *testing.B) {
	c, conn := connect(b)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	for _, x := range []struct {
		name string
		get  func() error
	}{
		{"context", func() error { _, _, err := c.Get(ctx, "/a"); return err }},
		{"background", func() error { _, _, err := c.Get(context.Background(), "/a"); return err }},
		{"go-zookeeper", func() error { _, _, err := conn.Get("/a"); return err }},
	} {
		b.Run(x.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := x.get(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
