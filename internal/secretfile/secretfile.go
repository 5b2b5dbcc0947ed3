// Package secretfile reads small files that may hold passwords or keys.
package secretfile

import (
	"fmt"
	"io"
	"os"
	"runtime"
)

// Read returns the content of a file of at most limit bytes. shared is empty, or says that every
// user of this machine can use the file, and how to change that. Errors do not show the content.
func Read(path string, limit int64) (content []byte, shared string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	if err != nil {
		return nil, "", err
	}
	content, err = io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	if err != nil {
		return nil, "", err
	}
	const others = 0o007
	if perm := info.Mode().Perm(); perm&others != 0 && runtime.GOOS != "windows" {
		shared = fmt.Sprintf("its permissions are %04o, so every user of this machine can use it: run chmod o= %s", perm, path)
	}
	return content, shared, nil
}
