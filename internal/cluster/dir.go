package cluster

import (
	"os"
	"path/filepath"
	"strconv"
)

// checkDir refuses a directory with the data of more or fewer members: those that are new would wait for being let in, and with
// fewer the rest could be no majority. A member whose data was emptied is let in by the others.
func (c *Config) checkDir() error {
	if c.Dir == "" {
		return nil
	}
	there := 0 // the highest number of a member with data
	for id := 1; id <= MaxMembers; id++ {
		if hasData(filepath.Join(c.Dir, strconv.Itoa(id))) {
			there = id
		}
	}
	switch {
	case c.Members > 1 && hasData(c.Dir):
		return kindf(ErrState, "lab: %s has the data of a server alone, and %d members want to use it: take another directory", c.Dir, c.Members)
	case there > 0 && there != c.Members:
		return kindf(ErrState, "lab: %s has the data of %d members, and %d want to use it: start as many, or take another directory", c.Dir, there, c.Members)
	}
	return nil
}

// hasData reports whether a server has used a directory: it leaves its lock file behind.
func hasData(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "LOCK"))
	return err == nil
}
