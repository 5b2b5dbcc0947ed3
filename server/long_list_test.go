package server_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/server"
)

// A list of children may become longer than jute.maxbuffer, as in ZooKeeper. A line in the log
// names its znode once, and once after each start.
func TestLongList(t *testing.T) {
	const limit, n = 4096, 100
	name := func(i int) string { return fmt.Sprintf("/parent/%060d", i) }
	var log bytes.Buffer
	cfg := server.Config{MaxBuffer: limit, Dir: t.TempDir(), Logger: hclog.New(&hclog.LoggerOptions{Output: &log})}
	s := start(t, cfg)
	c := dialIn(t, s, 10*time.Second)
	must[string](t)(c.Create("/parent", nil, 0, zk.WorldACL(zk.PermAll)))
	for i := range n {
		must[string](t)(c.Create(name(i), nil, 0, zk.WorldACL(zk.PermAll)))
	}
	names, _, err := c.Children("/parent")
	if err != nil || len(names) != n {
		t.Fatalf("%d children, %v", len(names), err)
	}
	const reply = 16 + 4 + n*(4+60) + 68
	if got := s.Facts().Stats().LongestListBytes; got != reply {
		t.Errorf("the longest list has %d bytes, want %d", got, reply)
	}
	c.Close()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	cfg.RefuseUnreadable = true
	s = start(t, cfg)
	if got := s.Facts().Stats().LongestListBytes; got != reply {
		t.Errorf("after a restart the longest list has %d bytes, want %d", got, reply)
	}
	c = dialIn(t, s, 10*time.Second)
	if _, err := c.Create(name(n), nil, 0, zk.WorldACL(zk.PermAll)); err == nil || !strings.Contains(err.Error(), "-5") {
		t.Errorf("with RefuseUnreadable: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(log.String(), "longer than jute.maxbuffer"); lines != 2 {
		t.Errorf("%d lines, want 2:\n%s", lines, log.String())
	}
}

// The line is not repeated while the length of a list swings around jute.maxbuffer, and a start
// does not report a list that the log made long and short again.
func TestLongList_OncePerParent(t *testing.T) {
	const limit = 4096
	var log bytes.Buffer
	cfg := server.Config{MaxBuffer: limit, Dir: t.TempDir(), Logger: hclog.New(&hclog.LoggerOptions{Output: &log})}
	s := start(t, cfg)
	c := dialIn(t, s, 10*time.Second)
	name := func(i int) string { return fmt.Sprintf("/parent/%060d", i) }
	create := func(path string) { must[string](t)(c.Create(path, nil, 0, zk.WorldACL(zk.PermAll))) }
	remove := func(path string) {
		if err := c.Delete(path, -1); err != nil {
			t.Fatal(err)
		}
	}
	create("/parent")
	for i := range 70 {
		create(name(i))
	}
	for range 5 { // from 62 children, which fit, to 70
		for i := 69; i >= 62; i-- {
			remove(name(i))
		}
		for i := 62; i < 70; i++ {
			create(name(i))
		}
	}
	lines := func() int { return strings.Count(log.String(), "longer than jute.maxbuffer") }
	if got := lines(); got != 1 {
		t.Errorf("%d lines for one parent, want 1:\n%s", got, log.String())
	}
	for i := range 70 {
		remove(name(i))
	}
	c.Close()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = start(t, cfg)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := lines(); got != 1 {
		t.Errorf("%d lines after a start with short lists, want 1:\n%s", got, log.String())
	}
}
