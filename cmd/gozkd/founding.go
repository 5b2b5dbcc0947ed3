package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
)

// initializeFile lets a server without data take part in founding an ensemble although
// db.autocreate is false. ZooKeeper's server looks for the file in dataLogDir, and its script
// zkServer-initialize.sh writes it to dataDir: here both places count.
const initializeFile = "initialize"

// initializeFiles returns the places of initializeFile; none if all data is in memory.
func initializeFiles(c config.Config) []string {
	switch {
	case c.Memory:
		return nil
	case c.Server.Dir == c.Server.LogDir:
		return []string{filepath.Join(c.Server.Dir, initializeFile)}
	}
	return []string{filepath.Join(c.Server.Dir, initializeFile), filepath.Join(c.Server.LogDir, initializeFile)}
}

// mayFound reports whether a server without data may take part in founding an ensemble. A server
// in memory always may, because no file could tell its first start from the later starts.
func mayFound(c config.Config) bool {
	return c.Found || c.Memory || slices.ContainsFunc(initializeFiles(c), func(path string) bool {
		_, err := os.Stat(path)
		return err == nil
	})
}

// founded removes the files that mayFound looks for. Call founded once the server has data: a
// later loss of the data must not pass for a first start.
func founded(c config.Config) error {
	var errs []error
	for _, path := range initializeFiles(c) {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove it by hand: while it exists, this server may found an empty ensemble after losing its data: %w", err))
		}
	}
	return errors.Join(errs...)
}

// refuseZooKeeperData returns an error if a server without data would serve an empty tree from a
// directory that holds the data of a ZooKeeper server.
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
