package server_test

import (
	"math"
	"sync"
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/exhaustive"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// Scrapes, resets, requests and Close run concurrently, and no count is ever negative.
func TestMonitor_Concurrent(t *testing.T) {
	s, err := server.New(server.Config{InProcess: true, SlowRequest: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	s.Facts().ResetStats()
	if list := s.Facts().Monitor(); list != nil {
		t.Errorf("before the start: %v", list)
	}
	stop := make(chan struct{})
	var busy sync.WaitGroup
	for range 2 { // both end with stop, awaited below
		busy.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				for _, v := range s.Facts().Monitor() {
					for name, is := range v.Lines() {
						switch is := is.(type) {
						case int64:
							if is < 0 && name != "last_client_response_size" && name != "min_client_response_size" && name != "max_client_response_size" {
								t.Errorf("%s is %d", name, is)
							}
						case float64:
							if is < 0 || math.IsNaN(is) || math.IsInf(is, 0) {
								t.Errorf("%s is %v", name, is)
							}
						}
					}
				}
				s.Facts().ResetStats()
			}
		})
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := dialer(t, s)()
	c.connect(10_000, 0, nil)
	c.call(1, proto.OpCreate, create{path: "/a"})
	for i := range exhaustive.Or[int32](100, 1000) {
		c.call(i, proto.OpSetData, setSecret{})
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	close(stop)
	busy.Wait()
	if list := s.Facts().Monitor(); list != nil {
		t.Errorf("after the end: %v", list)
	}
}
