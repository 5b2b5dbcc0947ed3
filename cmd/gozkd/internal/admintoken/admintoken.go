// Package admintoken keeps the token with which tools on the server's machine are administrators of
// its admin commands: a file in the data directory that only the server's user can read.
package admintoken

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/gozkd/gozkd/internal/secretfile"
	"github.com/gozkd/gozkd/internal/vfs"
)

// MinBytes is the length of the shortest token that a server accepts.
const MinBytes = 16

// maxBytes bounds what is read of a file.
const maxBytes = 4 << 10

// Path returns the path of the file in a data directory.
func Path(dir string) string { return filepath.Join(dir, "admin.token") }

// Ensure makes the file unless the file exists, and returns its absolute path. The token stays the
// same from start to start. A file that others can read, or that holds no token, is replaced.
func Ensure(dir string) (path string, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	path = Path(dir)
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = (vfs.OS{}).MkdirAll(dir)
	case err == nil && info.Mode().IsRegular() && (runtime.GOOS == "windows" || info.Mode().Perm()&0o077 == 0):
		if _, _, err := Read(path); err == nil {
			return path, nil
		}
	}
	if err == nil {
		err = vfs.WriteWhole(path, filepath.Base(path)+".*", func(f *os.File) error {
			_, err := f.WriteString(rand.Text() + "\n")
			return err
		})
	}
	if err != nil {
		return "", err
	}
	return path, nil
}

// Read returns the token in a file, and shared, which is that of [secretfile.Read].
func Read(path string) (token, shared string, err error) {
	text, shared, err := secretfile.Read(path, maxBytes)
	if err != nil {
		return "", "", err
	}
	token = strings.TrimSpace(string(text))
	if len(token) < MinBytes || strings.ContainsAny(token, " \t\r\n") {
		return "", "", errors.New(path + ": not a token: a line of at least 16 characters without spaces is needed")
	}
	return token, shared, nil
}
