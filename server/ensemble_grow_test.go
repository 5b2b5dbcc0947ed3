package server_test

import (
	"testing"
	"time"

	"github.com/gozkd/gozkd/proto"
)

// A standalone server with data becomes one of three when its configuration names the others.
func TestEnsemble_GrowsOutOfAServerAlone(t *testing.T) {
	withEnsemble(t, 3, func(t *testing.T, e *ensemble) {
		e.onDisk()
		served := e.m(1).begin(nil)
		if err := served(); err != nil {
			t.Fatal(err)
		}
		e.connect(1, time.Hour).call(1, proto.OpCreate, create{path: "/kept"})
		e.m(1).stop()
		e.start(1, 2, 3)
		e.awaitVoters(1, 2, 3)
		r := e.connect(3, time.Hour)
		r.sync()
		if !r.exists("/kept") {
			t.Error("the data is gone")
		}
		e.m(1).stop()
		e.check(2, 3, "/without-it")
	})
}
