package main

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
)

// A storage that blocks a write for ever does not prevent the server's end.
func TestArchiver_StopsWithoutTheStorage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cancelled, began := false, time.Now()
		a := &archiver{log: hclog.NewNullLogger(), cancel: func() { cancelled = true }, done: make(chan struct{})}
		a.stop()
		a.stop() // as serve does
		if !cancelled || time.Since(began) != stopTime {
			t.Errorf("cancelled: %v, waited for %v", cancelled, time.Since(began))
		}
	})
}
