package server_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/gozkd/gozkd/proto"
)

// write creates znodes on one member and looks for them on another, behind a sync.
func (e *ensemble) check(writer, reader int, path string) {
	e.t.Helper()
	w, r := e.connect(writer, time.Minute), e.connect(reader, time.Minute)
	if h, _ := w.call(1, proto.OpCreate, create{path: path}); h.Err != proto.OK {
		e.t.Fatalf("create %s on member %d: %v", path, writer, h.Err)
	}
	r.call(1, proto.OpSync, &proto.PathRequest{Path: &path})
	if h, _ := r.call(2, proto.OpExists, &proto.PathWatchRequest{Path: path}); h.Err != proto.OK {
		e.t.Fatalf("%s, made on member %d, is not on member %d: %v", path, writer, reader, h.Err)
	}
}

func TestEnsemble_FormsInAnyOrder(t *testing.T) {
	for name, order := range map[string][]int{"together": {1, 2, 3}, "backwards": {3, 2, 1}, "middle first": {2, 3, 1}} {
		for _, pause := range []time.Duration{0, 3 * time.Second} {
			t.Run(fmt.Sprint(name, pause), func(t *testing.T) {
				withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
					var serve []func() error
					for _, id := range order {
						serve = append(serve, e.m(id).begin(e.lines()))
						time.Sleep(pause)
					}
					for _, served := range serve {
						if err := served(); err != nil {
							t.Fatal(err)
						}
					}
					e.leader()
					e.check(1, 2, "/a")
					e.check(3, 1, "/b")
				})
			})
		}
	}
}
