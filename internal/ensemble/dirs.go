package ensemble

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// MaxMembers is the largest ensemble that runs in one process.
const MaxMembers = 9

// dirOf returns the directory of a member, numbered from 1, below dir: a standalone server has dir
// itself. An empty dir, which means no directory, stays empty.
func dirOf(dir string, member, members int) string {
	if dir == "" || members == 1 {
		return dir
	}
	return filepath.Join(dir, strconv.Itoa(member))
}

// checkDir refuses a directory that holds the data of another number of members. With more members,
// the new members would wait to be admitted; with fewer, the rest might not be a majority. A member
// without data is no error: the others admit it again.
func checkDir(dir string, members int) error {
	if dir == "" {
		return nil
	}
	found := 0 // the highest number of a member with data
	for id := 1; id <= MaxMembers; id++ {
		if hasData(filepath.Join(dir, strconv.Itoa(id))) {
			found = id
		}
	}
	switch {
	case members > 1 && hasData(dir):
		return fmt.Errorf("%s has the data of a server alone, and %d members want to use it: use another directory", dir, members)
	case found > 0 && found != members:
		return fmt.Errorf("%s has the data of %d members, and %d want to use it: start %[2]d, or use another directory", dir, found, members)
	}
	return nil
}

// hasData reports whether a server has used a directory. The server's lock file stays.
func hasData(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "LOCK"))
	return err == nil
}
