package members

import (
	"errors"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/internal/serverlist"
	"github.com/gozkd/gozkd/internal/testkit/vfstest"
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

// A file that is not whole, or cannot be read or written, is an error. Without a directory there is
// no file.
func TestAddresses_File(t *testing.T) {
	const one = "server.1=a:1:2"
	set := parseSet(t, one)
	errDisk := errors.New("disk error")
	for _, tc := range []struct{ text, want string }{
		{one + "\n\n" + one, "2 sections, not 3"},
		{one + "\n\n" + one + "\n\n" + one + "\n\n" + one, "4 sections, not 3"},
		{one + "\n\nnonsense\n\n" + one, "can be removed"},
		{one + "\n\n" + one + "\nversion=9\n\n" + one, ""},
	} {
		mem := vfstest.NewMem()
		if err := vfs.WriteFile(mem, "members", []byte(tc.text)); err != nil {
			t.Fatal(err)
		}
		p, err := OpenAddresses(mem, ".", set)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q: %v", tc.text, err)
		}
		if err == nil && p.known.Version != 9 {
			t.Errorf("the version is %d", p.known.Version)
		}
	}
	var failing vfstest.OpKind
	mem := vfstest.NewMem()
	disk := vfstest.NewFaulty(mem, func(op vfstest.Op) error {
		if op.Kind == failing {
			return errDisk
		}
		return nil
	})
	p, err := OpenAddresses(disk, ".", set)
	if err != nil {
		t.Fatal(err)
	}
	for i, kind := range []vfstest.OpKind{"", vfstest.OpCreate, vfstest.OpWrite, vfstest.OpSync, vfstest.OpRename, vfstest.OpSyncDir} {
		failing = kind
		if err := p.Update(set, proto.Zxid(i+1), nil); (failing != "") != errors.Is(err, errDisk) {
			t.Errorf("%s fails: %v", failing, err)
		}
	}
	failing = ""
	if err := p.Update(set, 50, nil); err != nil {
		t.Fatal(err)
	}
	if p, err := OpenAddresses(mem.Crash(func(int) int { return 0 }), ".", set); err != nil || p.known.Version != 50 {
		t.Errorf("after a power loss: %+v, %v", p, err)
	}
	failing = vfstest.OpOpen
	if _, err := OpenAddresses(disk, ".", set); !errors.Is(err, errDisk) {
		t.Error(err)
	}
	failing = vfstest.OpCreate
	p, err = OpenAddresses(disk, "", set)
	if err != nil || p.Update(set, 60, nil) != nil {
		t.Error("a server without a directory fails")
	}
	if m, ok := p.Local(1); !ok || m.Host != "a" {
		t.Errorf("member 1 is %+v", m)
	}
}

// Which address a member has after a change of the members.
func TestAddresses_Update(t *testing.T) {
	const configured, first = "server.1=one:1:2\nserver.2=two:1:2", "server.1=x:1:2\nserver.2=y:1:2"
	for what, tc := range map[string]struct {
		sets []string // of the state, one after the other
		want map[uint64]string
	}{
		"no change":               {[]string{first}, map[uint64]string{1: "one:1", 2: "two:1"}},
		"another election port":   {[]string{first, "server.1=x:1:3\nserver.2=y:1:2"}, map[uint64]string{1: "one:1", 2: "two:1"}},
		"another peer port":       {[]string{first, "server.1=x:9:2\nserver.2=y:1:2"}, map[uint64]string{1: "x:9", 2: "two:1"}},
		"one comes":               {[]string{first, first + "\nserver.3=z:1:2"}, map[uint64]string{1: "one:1", 2: "two:1", 3: "z:1"}},
		"one goes":                {[]string{first, "server.1=x:1:2"}, map[uint64]string{1: "one:1", 2: "two:1"}},
		"one returns":             {[]string{first, "server.1=x:1:2", first}, map[uint64]string{1: "one:1", 2: "two:1"}},
		"one returns from abroad": {[]string{first, "server.1=x:1:2", "server.1=x:1:2\nserver.2=v:1:2"}, map[uint64]string{1: "one:1", 2: "v:1"}},
		"one returns, moves, and moves back": {
			[]string{first, "server.1=x:1:2", first, "server.1=x:1:2\nserver.2=v:1:2", first}, map[uint64]string{1: "one:1", 2: "y:1"},
		},
		"one was never a member":    {[]string{"server.1=x:1:2"}, map[uint64]string{1: "one:1", 2: "two:1"}},
		"one goes and moves abroad": {[]string{first, "server.1=x:1:2", "server.1=w:1:2"}, map[uint64]string{1: "w:1", 2: "two:1"}},
	} {
		p, err := OpenAddresses(vfstest.NewMem(), "", parseSet(t, configured))
		if err != nil {
			t.Fatal(err)
		}
		for i, text := range tc.sets {
			if err := p.Update(parseSet(t, text), proto.Zxid(i+1), nil); err != nil {
				t.Fatal(err)
			}
			old := parseSet(t, "server.1=old:1:2")
			if err := p.Update(old, proto.Zxid(i+1), parseSet(t, "server.7=joins:1:2")); err != nil || p.ByMember()[7] != "joins:1" || p.ByMember()[1] == "old:1" {
				t.Errorf("%s: an old state: %v, %v", what, p.ByMember(), err)
			}
			if err := p.Update(old, 0, nil); err != nil {
				t.Fatal(err)
			}
		}
		got := p.ByMember()
		for id := range uint64(4) {
			if got[id] != tc.want[id] {
				t.Errorf("%s: member %d is at %q, want %q", what, id, got[id], tc.want[id])
			}
		}
	}
}
