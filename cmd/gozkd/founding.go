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

// mayFound reports whether a server without data may take part in founding an ensemble. A server
// in memory always may, because no file could tell its first start from the later starts.
func mayFound(c config.Config) bool {
	return c.Found || c.Memory || slices.ContainsFunc(dirsOf(c), func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, initializeFile))
		return err == nil
	})
}

// founded removes the files that mayFound looks for. Call founded once the server has data: a
// later loss of the data must not pass for a first start.
func founded(c config.Config) error {
	var errs []error
	for _, dir := range dirsOf(c) {
		if err := os.Remove(filepath.Join(dir, initializeFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove it by hand: while it exists, this server may found an empty ensemble after losing its data: %w", err))
		}
	}
	return errors.Join(errs...)
}
