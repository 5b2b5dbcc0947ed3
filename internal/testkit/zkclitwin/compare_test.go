package zkclitwin

import (
	"slices"
	"strings"
	"testing"
)

// What is no difference, and what is one.
func TestCompare(t *testing.T) {
	for _, c := range []struct {
		name     string
		from, to string // a change of what was recorded
		fails    string // the case that is to fail, or ""
	}{
		{name: "nothing changed"},
		{name: "another output", from: "Node already exists: /cli\n", to: "Node exists: /cli\n", fails: "create"},
		{name: "an output is missing", from: "Created /cli/eph\n", fails: "create"},
		{name: "a line more", from: "Created /cli/eph\n", to: "Created /cli/eph\nand more\n", fails: "create"},
		{name: "the usage behind a complaint", from: "Unrecognized option: -q\n", to: "Unrecognized option: -q\n" + usageOfGet},
		{name: "another command's usage", from: "Unrecognized option: --long\n", to: "Unrecognized option: --long\n" + usageOfGet, fails: "create, wrong"},
		{name: "a command of ours", from: "\tredo cmdno\n", to: "\tours [-x]\n\tredo cmdno\n"},
		{name: "a command is missing", from: "\tredo cmdno\n", fails: "start"},
		{name: "an event is missing", from: "\nWatchedEvent state:SyncConnected type:NodeDeleted path:/cli/w zxid: ZXID\n", fails: "events"},
		{name: "the session is lost", from: "Node does not exist: /mark-40\n", to: "Not connected\n", fails: "create, wrong"},
		{name: "another exit status", from: "exit status 1\n", to: "exit status 0\n", fails: "connect"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ours := strings.Replace(Recorded, c.from, c.to, 1)
			if c.from != "" && ours == Recorded {
				t.Fatalf("%q was not recorded", c.from)
			}
			var failed []string
			for _, r := range Compare(Recorded, ours) {
				if r.Err != nil {
					failed = append(failed, r.Name)
				}
			}
			if got := strings.Join(failed, ", "); got != c.fails {
				t.Errorf("failed: %q, want %q", got, c.fails)
			}
		})
	}
}

const usageOfGet = `get [-s] [-w] [-b] [-x] path
 -b   Output data in base64 format
 -s   Print znode stats additionally
 -w   Watch for changes on the znode
 -x   Output data in hexdump format

`

func TestWithoutEvents(t *testing.T) {
	rest, events := withoutEvents("Created /a\n\nWATCHER::\nls\n\nWatchedEvent b WatchRemoved\n\nWATCHER::\n\nWatchedEvent a WatchRemoved\n\nWATCHER::\n\nWatchedEvent c\n" +
		"\nWatchedEvent state:SyncConnected type:None\n\nWatchedEvent state:Closed type:None\n\nWatchedEvent d\nend\n")
	if want := "Created /a\nls\nend\n"; rest != want {
		t.Errorf("rest %q, want %q", rest, want)
	}
	if got, want := strings.Join(events, ", "), "a WatchRemoved, b WatchRemoved, c, state:Closed type:None, state:SyncConnected type:None, d"; got != want {
		t.Errorf("events %q, want %q", got, want)
	}
	for _, end := range []string{"", "\nWatchedEvent state:Closed type:None path:null\n"} {
		if _, events := withoutEvents("WATCHER::\n\nWatchedEvent c\n" + end); !slices.Equal(events, []string{"c"}) {
			t.Errorf("%q at the end: events %q", end, events)
		}
	}
}
