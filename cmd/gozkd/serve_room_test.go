package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
)

// TestAwaitRoom_RestsBetweenStarts: a server that stops because something on its disk is used up
// starts again after a second even if there are bytes enough: what was used up may be inodes, or
// another disk.
func TestAwaitRoom_RestsBetweenStarts(t *testing.T) {
	var c config.Config
	c.Server.Dir = t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		stop, cancel := context.WithTimeout(t.Context(), time.Minute) // if the disk has little room
		defer cancel()
		begun := time.Now()
		if awaitRoom(stop, c, hclog.NewNullLogger()); time.Since(begun) < time.Second {
			t.Errorf("the server starts again after %v", time.Since(begun))
		}
	})
}
