package consensus

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/consensus/internal/core"
	"github.com/gozkd/gozkd/internal/testkit/logbuf"
	"github.com/gozkd/gozkd/internal/testkit/vfstest"
)

// toLevel returns the levels of a version.
func toLevel(most Level) LevelRange { return LevelRange{Min: 1, Max: most} }

// A member alone activates its highest level at once, unless it is held back. From then on an older
// version refuses the directory, and names both levels: at first because of the log, then because
// of the checkpoint.
func TestLevel_OlderVersionRefusesTheDirectory(t *testing.T) {
	dir := t.TempDir()
	level := func(want Level, cfg Config) Level {
		written := make(chan struct{}, 100)
		cfg.Dir, cfg.OnCheckpoint = dir, func(time.Duration, int) { written <- struct{}{} }
		n := open(t, cfg)
		n.put(t, "a")
		defer n.close(t)
		for tries := 0; n.Status().Level < want && tries < 1000; tries++ {
			n.put(t, "a") // the leader proposes the level after the first requests
		}
		if cfg.CheckpointRequests > 0 {
			<-written               // it may be from before the log was applied
			for len(written) == 0 { // the end of the first may not be noted yet, so one put may begin none
				n.put(t, "b")
			}
		}
		return n.Status().Level
	}
	this := core.SupportedLevels.Max
	next := this + 1
	upTo := func(most Level) LevelRange { return LevelRange{Min: this, Max: most} }
	if got := level(this, Config{Levels: upTo(next), MaxLevel: this}); got != this {
		t.Fatalf("held back, the level is %d", got)
	}
	if got := level(this, Config{Levels: upTo(this)}); got != this {
		t.Fatalf("after the downgrade the level is %d", got)
	}
	if got := level(next, Config{Levels: upTo(next)}); got != next {
		t.Fatalf("the level is %d", got)
	}
	refused := func(why string) {
		t.Helper()
		before := vfstest.Fingerprint(t, dir)
		_, err := tryOpen(t, Config{Dir: dir, Levels: upTo(this)})
		_, readErr := ReadDir(dir, "", &list{})
		for _, err := range []error{err, readErr} {
			if !errors.Is(err, ErrLevel) || !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), fmt.Sprintf("has level %d, this program supports %d:", next, this)) {
				t.Errorf("%v; want %s", err, why)
			}
		}
		if after := vfstest.Fingerprint(t, dir); after != before {
			t.Error("the refusal changed the directory")
		}
	}
	refused("of the log in " + filepath.Join(dir, "wal"))
	if got := level(next, Config{Levels: upTo(next + 1), MaxLevel: next, CheckpointRequests: 1}); got != next {
		t.Fatalf("after a restart the level is %d", got)
	}
	refused("the checkpoint " + filepath.Join(dir, "checkpoint.db"))
	if _, err := ReadCheckpoint(filepath.Join(dir, "checkpoint.db"), &list{}); !errors.Is(err, ErrLevel) {
		t.Errorf("a restore: %v", err)
	}
	if _, err := tryOpen(t, Config{Dir: dir, Levels: LevelRange{Min: next + 1, Max: next + 2}}); !errors.Is(err, ErrLevel) {
		t.Errorf("a version that no longer supports the level: %v", err)
	}
}

// Members tell each other their levels in the hello. The level rises when the last member is ready,
// also without a restart, and without a new leader.
func TestLevel_MembersAgree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBubbled(t, time.Millisecond, 10*time.Millisecond, func(i int, cfg *Config) {
			if cfg.Levels = toLevel(2); i == 1 {
				cfg.MaxLevel = 1
			}
		})
		defer b.stop()
		leader := b.leader()
		term := b.members[leader].Status().Term
		for i, n := range b.members {
			if got := n.Status().Level; got != 1 {
				t.Errorf("member %d has level %d although one holds it back", i+1, got)
			}
		}
		b.members[1].SetMaxLevel(0)
		time.Sleep(3 * time.Second)
		for i, n := range b.members {
			if s := n.Status(); s.Level != 2 || s.Term != term {
				t.Errorf("member %d has level %d, and the term went from %d to %d", i+1, s.Level, term, s.Term)
			}
		}
	})
}

// A member that does not support the active level is refused by the others, and both sides log why.
// The others go on.
func TestLevel_TooOldMemberIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs, states := [3]logbuf.Buffer{}, [3]Memory{}
		levels := [3]LevelRange{toLevel(2), toLevel(2), toLevel(2)}
		begin := func() *bubbled {
			return newBubbled(t, time.Millisecond, 10*time.Millisecond, func(i int, cfg *Config) {
				cfg.Levels, cfg.Logger = levels[i], hclog.New(&hclog.LoggerOptions{Output: &logs[i]})
				if cfg.Memory = &states[i]; levels[i].Max == 1 {
					cfg.Memory = nil // an emptied directory: the data itself would be refused
				}
			})
		}
		b := begin()
		b.leader()
		b.stop()
		levels[2] = toLevel(1)
		b = begin()
		defer b.stop()
		time.Sleep(time.Minute)
		done := make(chan struct{})
		b.members[0].Propose([]byte("x"), func() { close(done) })
		<-done
		if s := b.members[2].Status(); !s.Fresh || s.Leader != 0 {
			t.Errorf("the old member takes part: %+v", s)
		}
		const reason = "has feature level 2, member 3 supports 1: start member 3 with a version of gozkd that supports level 2"
		for i := range logs {
			if logs[i].Count(reason) == 0 {
				t.Errorf("member %d does not log why:\n%s", i+1, logs[i].String())
			}
		}
		if logs[0].Count("feature level activated") == 0 {
			t.Error("the activation is not logged")
		}
	})
}

// A start that applies the entry of the level again, because the log does not say yet that the
// entry is committed, does not log an activation.
func TestLevel_AppliedAgain(t *testing.T) {
	dir := t.TempDir()
	for i := range 3 {
		var logs logbuf.Buffer
		n := open(t, Config{Dir: dir, Levels: toLevel(2), Logger: hclog.New(&hclog.LoggerOptions{Output: &logs})})
		for n.Status().Level < 2 {
			time.Sleep(time.Millisecond)
		}
		n.close(t)
		want := 0
		if i == 0 {
			want = 1
		}
		if got := logs.Count("feature level activated"); got != want {
			t.Errorf("start %d logs %d activations, want %d", i+1, got, want)
		}
	}
}
