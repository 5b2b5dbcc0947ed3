package members

import (
	"testing"

	"github.com/gozkd/gozkd/internal/serverlist"
	"github.com/gozkd/gozkd/internal/vfs"
	"github.com/gozkd/gozkd/proto"
)

func parseSet(t *testing.T, text string) serverlist.Set {
	t.Helper()
	set, _, err := serverlist.ParseConfig(text)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// Each server keeps its own addresses of the others across restarts, replays of the log, and
// reconfigs.
func TestAddresses_RestartsAndReconfigs(t *testing.T) {
	configured := parseSet(t, "server.1=host1:1:2\nserver.2=0.0.0.0:1:2\nserver.3=host3:1:2")
	replicated := parseSet(t, "server.1=0.0.0.0:1:2\nserver.2=host2:1:2\nserver.3=host3:1:2") // as the first leader is configured
	moved := parseSet(t, "server.1=0.0.0.0:1:2\nserver.2=host2:1:2\nserver.3=elsewhere:1:2\nserver.4=host4:1:2")
	without1 := parseSet(t, "server.2=host2:1:2\nserver.3=elsewhere:1:2\nserver.4=host4:1:2")
	dir := t.TempDir()
	var b *Addresses
	open := func() {
		t.Helper()
		var err error
		if b, err = OpenAddresses(vfs.OS{}, dir, configured); err != nil {
			t.Fatal(err)
		}
	}
	update := func(set serverlist.Set, version proto.Zxid, wanted serverlist.Set) {
		t.Helper()
		if err := b.Update(set, version, wanted); err != nil {
			t.Fatal(err)
		}
	}
	check := func(when string, want ...string) {
		t.Helper()
		got := b.ByMember()
		for id := range uint64(4) {
			if got[id+1] != want[id] {
				t.Errorf("%s: member %d is at %q, want %q", when, id+1, got[id+1], want[id])
			}
		}
	}
	first := []string{"host1:1", "0.0.0.0:1", "host3:1", ""}
	open()
	update(nil, 0, nil)
	check("before there is an ensemble", first...)
	update(nil, 0, replicated)
	update(replicated, 5, replicated)
	check("in the first life", first...)
	for range 2 { // the second one reads what the first one wrote
		open()
		check("after a restart", first...)
		update(nil, 0, nil) // the first checkpoint names no members
		check("with an old checkpoint", first...)
		update(nil, 0, replicated)
		update(replicated, 5, replicated)
		check("when the log is applied again", first...)
	}
	then := []string{"host1:1", "0.0.0.0:1", "elsewhere:1", "host4:1"}
	update(moved, 9, moved)
	check("after a reconfig", then...)
	open()
	update(replicated, 5, replicated)
	check("after a restart behind a reconfig", then...)
	update(moved, 9, moved)
	update(without1, 12, without1)
	check("a member that was removed is served as long as it runs", then...)
	update(moved, 15, moved)
	check("and when it comes back it is where it was", then...)

	configured = parseSet(t, "server.1=host1:1:2\nserver.2=0.0.0.0:1:2\nserver.3=third:1:2")
	open()
	check("what the operator changes counts", "host1:1", "0.0.0.0:1", "third:1", "host4:1")
}
