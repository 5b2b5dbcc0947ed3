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
