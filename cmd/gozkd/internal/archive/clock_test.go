package archive

import (
	"bytes"
	"encoding/binary"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive/store"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive/store/storetest"
	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/internal/testkit/logbuf"
)

// A clock that jumps ahead by more than the retention, that of the writer or that of the leader,
// does not make the bases before the jump outdated. Those that were outdated before still are.
func TestOutdated_ClockJumpsAhead(t *testing.T) {
	const day = 24 * time.Hour
	begin := time.Unix(1e9, 0)
	// A base and the entry after it for each time.
	archive := func(times ...time.Time) (names []string) {
		at := position{4, firstChain(ensemble, 4, 5)}
		for _, when := range times {
			entry, err := consensus.DecodeLogEntry(at.index+1, binary.AppendUvarint([]byte{5, 0, 1}, uint64(when.UnixMilli())))
			if err != nil {
				t.Fatal(err)
			}
			n, _ := encodeLog(ensemble, at, []consensus.LogEntry{entry})
			names = append(names, baseName{position: at, ms: when.UnixMilli(), writer: "00000000"}.in(ensemble)+partName(0, true), n.in(ensemble))
			at = n.after()
		}
		return names
	}
	var times []time.Time
	for i := range 12 {
		times = append(times, begin.Add(time.Duration(i)*day/2))
	}
	jumped := append(slices.Clone(times), begin.Add(1000*day), begin.Add(1000*day+time.Minute))
	now := time.Now().Truncate(time.Millisecond)
	var recent []time.Time
	for i := range 20 {
		recent = append(recent, now.Add(time.Duration(i-19)*day/2))
	}
	recent = append(recent, now.Add(1000*day), now.Add(1000*day))
	for name, c := range map[string]struct {
		times []time.Time
		kept  time.Time // the oldest
	}{
		"the leader has jumped, by any clock": {recent, now.Add(-5 * day)},
		"no jump":                             {times, begin.Add(day / 2)},
		"the leader jumps":                    {jumped, begin.Add(3 * day)},
	} {
		got := catalogOf(archive(c.times...)...)
		gone := got.outdated(got.clock(), 5*day, nil)
		oldest := slices.IndexFunc(got.bases, func(b base) bool { return !slices.Contains(gone, b.parts[0]) })
		if b := got.bases[oldest]; !timeOf(b.ms).Equal(c.kept) {
			t.Errorf("%s: the oldest base is of %v, want %v", name, timeOf(b.ms).Sub(begin), c.kept.Sub(begin))
		}
	}
}

// jumpedLog returns n entries, an hour apart. The clock of the leader jumps ahead at one of them.
// Batches say so until the time of the jump has come.
func jumpedLog(t *testing.T, n, jump int, ahead time.Duration) (list []consensus.LogEntry) {
	t.Helper()
	when := time.Now()
	for i := range n {
		clock := time.Now().Add(time.Duration(i) * time.Hour)
		if i == jump {
			clock = clock.Add(ahead)
		}
		if clock.After(when) {
			when = clock
		}
		data := binary.AppendUvarint([]byte{5, 0, 1}, uint64(when.UnixMilli()))
		e, err := consensus.DecodeLogEntry(uint64(i)+1, data)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, e)
	}
	return list
}

// hourly archives a log, of which an entry is applied each hour, with a base per day and a
// retention of five days. It calls look each day, with the days.
func hourly(t *testing.T, m *storetest.Memory, log []consensus.LogEntry, logged io.Writer, look func(day int)) {
	t.Helper()
	f := &fixedSource{log: log}
	f.applied.Store(1)
	f.at = log[0].Time
	s := newShipper(m, 24*time.Hour)
	s.cfg.Interval, s.cfg.Retention = time.Hour, 5*24*time.Hour
	s.cfg.Logger = hclog.New(&hclog.LoggerOptions{Output: logged})
	stop := archivingWith(t, s, f)
	defer stop()
	time.Sleep(time.Minute)
	for i := 1; i < len(log); i++ {
		time.Sleep(time.Hour)
		synctest.Wait()
		f.at = log[i].Time
		f.applied.Add(1)
		if i%24 == 0 {
			look(i / 24)
		}
	}
}

// After the clock of a leader has jumped ahead, the archive makes bases, merges objects and expires
// what is old, and keeps every moment of the retention all the time.
func TestShipper_LeaderClockJumpsAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := storetest.New(1)
		var logged bytes.Buffer
		const jump, ahead = 10, 60 // days
		hourly(t, m, jumpedLog(t, 80*24, jump*24, ahead*24*time.Hour), &logged, func(day int) {
			c := listed(t, m)
			bases := c.whole()
			other := newShipper(m, 24*time.Hour) // another member, whose turn has come
			other.ensemble, other.rounds = ensemble, 1
			newest := bases[len(bases)-1].index
			if due, err := other.needsBase(t.Context()); err != nil || due && day*24-int(newest) < 23 {
				t.Errorf("day %d: another base is due after that of entry %d: %v", day, newest, err)
			}
			age := day - int(bases[0].index)/24
			if age < min(day, 5) {
				t.Errorf("day %d: the oldest base is %d days old", day, age)
			}
			if day < jump+ahead && age > 10 {
				t.Errorf("day %d: the oldest base is %d days old, with a retention of five", day, age)
			}
			if n := len(bases); n < age/3 || n > age+2 {
				t.Errorf("day %d: %d bases in %d days", day, n, age)
			}
			if n := len(c.logs); day > 12 && day < jump+ahead && n > age*24*3/4 {
				t.Errorf("day %d: %d objects of %d days", day, n, age)
			}
		})
		if strings.Contains(logged.String(), "from the future") {
			t.Error(logged.String())
		}
	})
}

// If the clock of the storage is ahead too, everything is kept, bases are made at their interval,
// and the log says once a day why.
func TestShipper_StoreClockIsAheadToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := storetest.New(1)
		m.Set(storetest.Faults{Ahead: 100 * 24 * time.Hour})
		var logged bytes.Buffer
		const days = 20
		hourly(t, m, jumpedLog(t, days*24+1, 0, 60*24*time.Hour), &logged, func(day int) {
			if oldest := listed(t, m).bases[0].index; oldest > 1 {
				t.Errorf("day %d: the oldest base is of entry %d", day, oldest)
			}
		})
		if n := len(listed(t, m).whole()); n < days/2 || n > days {
			t.Errorf("%d bases in %d days", n, days)
		}
		if n := strings.Count(logged.String(), "from the future"); n < days/2 || n > days {
			t.Errorf("%d warnings in %d days", n, days)
		}
	})
}

// A storage whose clock is behind makes nothing older than what was written before the jump.
func TestOutdated_StoreClockIsBehind(t *testing.T) {
	now := time.Now()
	var names []string
	at := position{4, firstChain(ensemble, 4, 5)}
	for _, when := range []time.Time{now.Add(-time.Hour), now.Add(1000 * time.Hour), now.Add(1000 * time.Hour)} {
		n, _ := encodeLog(ensemble, at, entriesFrom(t, at.index+1, 1))
		n.ms = when.UnixMilli()
		base := baseName{position: at, ms: n.ms, writer: "00000000"}.in(ensemble)
		names, at = append(names, base+partName(0, true), n.in(ensemble)), n.after()
	}
	slices.Sort(names)
	for _, modified := range []time.Time{{}, time.Unix(1e9, 0), now.Add(-time.Minute), now.Add(2000 * time.Hour)} {
		var list []store.Object
		for _, name := range names {
			list = append(list, store.Object{Name: name, Modified: modified})
		}
		c := newCatalog(ensemble, list)
		last := c.bases[len(c.bases)-1]
		when := c.at(last.ms, last.modified)
		if known := !modified.IsZero() && modified.Before(now); when.After(now) == known {
			t.Errorf("with objects from %v: the last base is from %v", modified, when)
		}
		if gone := c.outdated(c.clock(), 30*time.Minute, nil); len(gone) != 0 {
			t.Errorf("with objects from %v: deleted %v", modified, gone)
		}
		if gone := c.outdated(now, 30*time.Minute, nil); len(gone) != 0 {
			t.Errorf("with objects from %v, by the wall clock: deleted %v", modified, gone)
		}
	}
}

// The lag grows while the storage is away, and while the archive is ahead of the ensemble: the
// alert must not wait for what comes after that.
func TestShipper_LagWithoutTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, f := storetest.New(1), &fixedSource{log: entriesFrom(t, 1, 40)}
		f.applied.Store(20)
		s := newShipper(m, 24*time.Hour)
		var said logbuf.Buffer
		s.cfg.Logger = hclog.New(&hclog.LoggerOptions{Output: &said})
		stop := archivingWith(t, s, f)
		time.Sleep(time.Minute)
		if lag := s.Stats().Lag; lag != 0 {
			t.Errorf("lag %v with everything archived", lag)
		}
		m.Set(storetest.Faults{Down: true})
		f.applied.Store(30)
		time.Sleep(2 * time.Minute)
		if lag := s.Stats().Lag; lag < 100*time.Second {
			t.Errorf("lag %v after two minutes without the store", lag)
		}
		m.Set(storetest.Faults{})
		time.Sleep(time.Minute)
		stop()
		if lag := s.Stats().Lag; lag != 0 {
			t.Errorf("lag %v with everything archived", lag)
		}
		if said.Count("the archive cannot be written") != 1 || said.Count("the archive is written again") != 1 {
			t.Errorf("the log says:\n%s", said.String())
		}

		f.applied.Store(25) // brought back
		s = newShipper(m, 24*time.Hour)
		stop = archivingWith(t, s, f)
		defer stop()
		time.Sleep(2 * time.Minute)
		if lag := s.Stats().Lag; lag < 100*time.Second {
			t.Errorf("lag %v two minutes after the ensemble was brought back", lag)
		}
	})
}
