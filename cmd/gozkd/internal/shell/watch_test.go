package shell

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/zktest"
)

// watcher is a running watch command.
type watcher struct {
	out, err lockedBuffer
	cancel   context.CancelFunc
	status   chan int
}

// startWatch starts a watch command.
func startWatch(t *testing.T, args ...string) *watcher {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &watcher{cancel: cancel, status: make(chan int, 1)}
	// Ends when ctx has ended; the cleanup waits for it.
	go func() {
		defer close(w.status)
		w.status <- Main(ctx, args, testEnv("", &w.out, &w.err, nil))
	}()
	t.Cleanup(func() {
		cancel()
		for range w.status {
		}
	})
	w.out.await(t, "Watching")
	return w
}

// end waits for the end of the command.
func (w *watcher) end() ranCLI { return ranCLI{<-w.status, w.out.String(), w.err.String()} }

// stop interrupts the command, like Ctrl-C.
func (w *watcher) stop() ranCLI {
	w.cancel()
	return w.end()
}

// wantLines compares lines with patterns in which TIME and ZXID are wildcards.
func wantLines(t *testing.T, got string, patterns ...string) {
	t.Helper()
	want := strings.NewReplacer(
		"TIME", `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(Z|[+-]\d\d:\d\d)`, "ZXID", "0x[0-9a-f]+",
	).Replace(regexp.QuoteMeta(strings.Join(patterns, "\n") + "\n"))
	if !regexp.MustCompile("^" + want + "$").MatchString(got) {
		t.Errorf("the output is\n%swant\n%s", got, strings.Join(patterns, "\n"))
	}
}

func TestWatch(t *testing.T) {
	server := zktest.Start(t)
	at := server.ConnectString()
	do := func(args ...string) {
		t.Helper()
		if r := runCLI(t, "", nil, append([]string{"-server", at}, args...)...); r.status != 0 {
			t.Fatal(args, r)
		}
	}
	plain := startWatch(t, "-server", at, "watch", "/a")
	below := startWatch(t, "-server", at, "watch", "-R", "--data", "/a")
	lines := startWatch(t, "-server", at, "--output", "json", "watch", "/a", "--data")
	below.out.await(t, "Current")
	lines.out.await(t, "Current")
	do("create", "/a", "one")
	lines.out.await(t, `"data":"one"`)
	below.out.await(t, `"one"`)
	do("create", "/a/b")
	do("create", "/ab")
	do("set", "/a", "-b", "/w==")
	for _, w := range []*watcher{plain, below, lines} {
		w.out.await(t, "NodeDataChanged")
	}
	lines.out.await(t, `"data_base64":"/w=="`)
	below.out.await(t, "data_base64=/w==")

	server.CloseConnections()
	for _, w := range []*watcher{plain, below, lines} {
		w.out.await(t, "connected again")
	}
	below.out.awaitTimes(t, "data_base64=/w==", 2)
	lines.out.awaitTimes(t, `"data_base64":"/w=="`, 2)
	do("deleteall", "/a")
	for _, w := range []*watcher{plain, below, lines} {
		w.out.await(t, "NodeDeleted")
	}
	plain.out.await(t, "NodeDeleted /a ")
	below.out.await(t, "NodeDeleted /a ")
	lines.out.await(t, `"type":"NodeDeleted","path":"/a"`)

	r := plain.stop()
	if r.status != 0 || r.err != "" {
		t.Errorf("a watch ended with %+v", r)
	}
	wantLines(t, r.out,
		"TIME Watching /a", "TIME NodeCreated /a zxid=ZXID", "TIME NodeChildrenChanged /a zxid=ZXID", "TIME NodeDataChanged /a zxid=ZXID",
		"TIME !!! the connection is lost: events from now on may be missed",
		"TIME !!! connected again, to "+at+": events since TIME may have been missed",
		"TIME NodeChildrenChanged /a zxid=ZXID", "TIME NodeDeleted /a zxid=ZXID")
	wantLines(t, below.stop().out,
		"TIME Watching /a", "TIME Current /a gone", `TIME NodeCreated /a zxid=ZXID version=0 data="one"`, "TIME NodeCreated /a/b zxid=ZXID version=0 data=null",
		"TIME NodeDataChanged /a zxid=ZXID version=1 data_base64=/w==",
		"TIME !!! the connection is lost: events from now on may be missed",
		"TIME !!! connected again, to "+at+": events since TIME may have been missed",
		"TIME Current /a version=1 data_base64=/w==",
		"TIME NodeDeleted /a/b zxid=ZXID", "TIME NodeDeleted /a zxid=ZXID")
	j := lines.stop()
	if j.err != "" {
		t.Errorf("on standard error: %s", j.err)
	}
	for _, want := range []string{
		`","type":"Current","path":"/a","stat":null}`, `","type":"Lost","path":"/a","why":"the connection is lost"}`,
		`","why":"connected again, to ` + at + `"}`,
	} {
		if !strings.Contains(j.out, want) {
			t.Errorf("no %s in\n%s", want, j.out)
		}
	}
}

func TestWatch_Expired(t *testing.T) {
	server := zktest.Start(t)
	w := startWatch(t, "-server", server.ConnectString(), "watch", "/a")
	server.ExpireSession(int64(server.Sessions()[0].ID))
	w.out.await(t, "!!! the connection is lost")
	if r := w.end(); r.status != 1 || !strings.Contains(r.err, "the watch has ended with its session: Expired") {
		t.Errorf("%+v", r)
	}
}

// A full queue drops events, except changes of the session's state, and reports that.
func TestEventQueue(t *testing.T) {
	s := newEventQueue("/a", true)
	for range maxQueuedEvents + 1 {
		s.put(client.Event{Type: proto.EventDataChanged, Path: "/a/b"})
	}
	s.put(client.Event{Type: client.EventSession})
	events, dropped := s.next(t.Context())
	if len(events) != maxQueuedEvents+1 || !dropped {
		t.Errorf("%d events, dropped %v", len(events), dropped)
	}
	for _, path := range []string{"/", "/ab", "/b/a"} {
		if s.put(client.Event{Type: proto.EventCreated, Path: path}) {
			t.Errorf("covers %s", path)
		}
	}
	if s := newEventQueue("/", true); !s.put(client.Event{Type: proto.EventCreated, Path: "/x"}) {
		t.Error("/ does not cover /x")
	}
	if s := newEventQueue("/a", false); s.put(client.Event{Type: proto.EventCreated, Path: "/a/b"}) {
		t.Error("what is not recursive covers what is below")
	}
}
