package archive

import (
	"context"
	"fmt"
	"math/bits"
	"sort"
	"time"

	"github.com/gozkd/gozkd/consensus"
)

const (
	// fanIn is the number of objects in a row that are merged.
	fanIn = 16
	// tierBytes bounds objects of the lowest tier. Each further tier is fanIn times larger.
	tierBytes = 4 << 10
	tiers     = 3
	// settledAge is how old objects must be before they are merged: no write that is under way may
	// continue a chain within them.
	settledAge = 10 * time.Minute
	// mergeBytes bounds the entries of a merged object.
	mergeBytes = 32 << 20
	// unfinishedAge is how old an unfinished base must be before it is deleted.
	unfinishedAge = 24 * time.Hour
	// clockTolerance is by how much a clock may be ahead.
	clockTolerance = 10 * time.Minute
)

// keepHouse merges small objects and deletes objects older than the retention.
func (s *Shipper) keepHouse(ctx context.Context) error {
	c, err := s.catalog(ctx, "")
	if err != nil {
		return err
	}
	now, times := c.clock(), c.times()
	if len(times) > 0 && time.Until(times[0]) > clockTolerance && time.Since(s.warned) >= 24*time.Hour {
		s.warned = time.Now()
		s.cfg.Logger.Warn("objects in the archive are from the future, also by the clock of the storage, and are kept"+
			" for longer: set the clocks of the servers and of the storage", "archive", s.cfg.Store.String())
	}
	for _, run := range c.mergeable(now.Add(-settledAge)) {
		if err := s.merge(ctx, run); err != nil {
			return err
		}
	}
	return s.delete(ctx, c.outdated(now, s.cfg.Retention, s.base))
}

// clock returns the present time or that of the newest batch before it: this clock may have jumped.
func (c *catalog) clock() time.Time {
	now := time.Now()
	for _, t := range c.times() {
		if t.Before(now) {
			return t
		}
	}
	return now
}

// times returns the times of all objects with entries and of all complete bases, the newest first.
func (c *catalog) times() (list []time.Time) {
	for _, o := range c.logs {
		list = append(list, c.at(o.ms, o.modified))
	}
	for _, b := range c.whole() {
		if b.ms > 0 {
			list = append(list, c.at(b.ms, b.modified))
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].After(list[j]) })
	return list
}

// horizon returns the time up to which the retention keeps nothing. The time between two objects
// counts as half of the retention at most: the clock of a leader may have jumped ahead, and then
// the batches after the jump say so too. Those in the future do not count.
func (c *catalog) horizon(now time.Time, retention time.Duration) time.Time {
	left := retention
	for _, t := range c.times() {
		gap := min(now.Sub(t), retention/2)
		if gap >= left {
			break
		}
		if gap >= 0 {
			now, left = t, left-gap
		}
	}
	return now.Add(-left)
}

// mergeable returns the runs of objects to merge (A6). No run crosses a base.
func (c *catalog) mergeable(before time.Time) (runs [][]object) {
	based := make(map[uint64]bool)
	for _, b := range c.bases {
		based[b.index] = true
	}
	covered := uint64(0)
	for _, b := range c.whole() {
		if b.index < covered {
			continue // on the path of an earlier base
		}
		path := c.path(b.position)
		covered = endOf(b.position, path).index
		for level := range tiers {
			if run := c.firstRun(path, based, level, before); run != nil {
				runs = append(runs, run)
				break
			}
		}
	}
	return runs
}

// firstRun returns fanIn or more objects in a row that are of a level or of lower ones, and
// together not too large.
func (c *catalog) firstRun(path []object, based map[uint64]bool, level int, before time.Time) []object {
	var run []object
	size := int64(0)
	for _, o := range path {
		tier := (bits.Len64(uint64(o.size/tierBytes)) + 3) / 4
		fits := tier <= level && c.at(o.ms, o.modified).Before(before)
		if !fits || based[o.first-1] || size+o.size > pieceBytes {
			if len(run) >= fanIn {
				break
			}
			run, size = nil, 0
		}
		if fits {
			run, size = append(run, o), size+o.size
		}
	}
	if len(run) < fanIn {
		return nil
	}
	return run
}

// merge replaces objects, each of which continues its predecessor, by a single object.
func (s *Shipper) merge(ctx context.Context, run []object) error {
	var entries []consensus.LogEntry
	size, merged := 0, 0
	for _, o := range run {
		part, err := readLog(ctx, s.get, s.ensemble, o)
		if err != nil {
			return err
		}
		for _, e := range part {
			size += len(e.Data)
		}
		if size > mergeBytes {
			break
		}
		entries, merged = append(entries, part...), merged+1
	}
	if merged < 2 {
		return nil
	}
	run = run[:merged]
	n, b := encodeLog(s.ensemble, run[0].before(), entries)
	if n.after() != run[merged-1].after() {
		return fmt.Errorf("%w: %s does not continue the objects before it", ErrCorrupt, run[merged-1].name)
	}
	name := n.in(s.ensemble)
	if err := s.put(ctx, name, b); err != nil {
		return err
	}
	if _, err := readLog(ctx, s.get, s.ensemble, object{logName: n, name: name}); err != nil {
		return fmt.Errorf("read back: %w", err)
	}
	var names []string
	for _, o := range run {
		names = append(names, o.name)
	}
	return s.delete(ctx, names)
}

// outdated returns the names of what the retention no longer keeps, and of unfinished bases, except
// the one that this shipper uploads.
func (c *catalog) outdated(now time.Time, retention time.Duration, own *baseJob) (names []string) {
	// keep is the index of the first base that is kept: one from which the log goes on as far as
	// from any base before it. That is not so for a base between the objects of a writer whom
	// another passed.
	keep, furthest := uint64(0), uint64(0)
	if retention > 0 {
		horizon := c.horizon(now, retention)
		for _, b := range c.whole() {
			_, end := c.reach(b.position)
			if end.index >= furthest && b.ms > 0 && !c.at(b.ms, b.modified).After(horizon) {
				keep = b.index
			}
			furthest = max(furthest, end.index)
		}
	}
	tail, _, _ := c.tail()
	for _, b := range c.bases {
		if own != nil && own.folder == b.folder {
			continue
		}
		// The base at the end of the log may be under way, however old its last batch is.
		if b.index < keep || !b.whole && b.index < tail.index && now.Sub(c.at(b.ms, b.modified)) > unfinishedAge {
			names = append(names, b.parts...)
		}
	}
	// After the bases: a base without its log would look like a gap until all is deleted.
	for _, o := range c.logs {
		if o.last <= keep {
			names = append(names, o.name)
		}
	}
	return names
}

func (s *Shipper) delete(ctx context.Context, names []string) error {
	for _, name := range names {
		err := s.request(ctx, func(ctx context.Context) error { return s.cfg.Store.Delete(ctx, name) })
		if err != nil {
			return err
		}
	}
	return nil
}
