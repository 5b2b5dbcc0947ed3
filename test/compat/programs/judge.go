package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// values returns the rest of each line that starts with the word.
func values(output, word string) []string {
	var list []string
	for line := range strings.Lines(output) {
		if rest, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), word+" "); ok {
			list = append(list, rest)
		}
	}
	return list
}

// kept returns an error if an acknowledged id was not found, or any id was found twice. Ids that
// were not acknowledged may be found, because their replies may have been lost.
func kept(acked, found []string) error {
	times := make(map[string]int)
	for _, id := range found {
		if times[id]++; times[id] > 1 {
			return fmt.Errorf("%q is there %d times", id, times[id])
		}
	}
	for i, id := range acked {
		if times[id] == 0 {
			return fmt.Errorf("%q, acknowledged as number %d of %d, is lost; %d are there", id, i+1, len(acked), len(found))
		}
	}
	if len(acked) == 0 {
		return fmt.Errorf("nothing was acknowledged")
	}
	return nil
}

// mastership says that a participant was the master of a partition between two times.
type mastership struct {
	partition, participant string
	from, to               int64 // milliseconds
}

// masterships are those of all participants.
type masterships []mastership

// ended adds the masterships in the log of a participant. The latest end at the given time.
func (m *masterships) ended(participant, log string, at time.Time) {
	begun := make(map[string]int64)
	for line := range strings.Lines(log) {
		f := strings.Fields(line)
		if len(f) != 3 || f[0] != "begin" && f[0] != "end" {
			continue
		}
		ms := must.Get(strconv.ParseInt(f[2], 10, 64))
		if from, ok := begun[f[1]]; ok {
			*m = append(*m, mastership{f[1], participant, from, ms})
			delete(begun, f[1])
		}
		if f[0] == "begin" {
			begun[f[1]] = ms
		}
	}
	for partition, from := range begun {
		*m = append(*m, mastership{partition, participant, from, at.UnixMilli()})
	}
}

// oneMaster returns an error if two participants were master of a partition at once.
func oneMaster(masters []mastership) error {
	for i, a := range masters {
		for _, b := range masters[:i] {
			if a.partition == b.partition && a.from < b.to && b.from < a.to {
				return fmt.Errorf("two masters at once: %+v and %+v", a, b)
			}
		}
	}
	if len(masters) == 0 {
		return fmt.Errorf("there was no master")
	}
	return nil
}
