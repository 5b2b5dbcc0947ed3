package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
)

// refuseZooKeeperData refuses to serve an empty tree from a directory with a ZooKeeper's data.
func refuseZooKeeperData(c config.Config) error {
	if c.Memory {
		return nil
	}
	if _, err := os.Stat(filepath.Join(c.Server.Dir, "LOCK")); err == nil { // gozkd has used the directory
		return nil
	}
	for _, dir := range []string{c.Server.Dir, c.Server.LogDir} {
		for _, kind := range []string{"snapshot.*", "log.*"} {
			found, err := filepath.Glob(filepath.Join(dir, "version-2", kind))
			if err != nil || len(found) == 0 {
				continue // the directory's name is no pattern: what is not found is not protected
			}
			from, into := c.Server.Dir, filepath.Clean(c.Server.Dir)+"-gozkd"
			if c.Server.LogDir != c.Server.Dir {
				from += ":" + c.Server.LogDir
			}
			return fmt.Errorf("%s holds the data of a ZooKeeper server. Stop ZooKeeper, and import its data into a new dataDir:\n"+
				"  gozkd import %s --into %s\n"+
				"Then set dataDir=%s. To begin with an empty tree on purpose, move %s away, or set another dataDir", found[0], from, into, into, filepath.Dir(found[0]))
		}
	}
	return nil
}
