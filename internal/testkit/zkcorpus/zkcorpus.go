// Package zkcorpus has files that real ZooKeeper servers of several releases left behind when they
// were killed under load, and what each served after its restart. They are written by
//
//	go run ./test/compat/moving -releases all -corpus internal/testkit/zkcorpus/testdata
package zkcorpus

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/proto"
)

// Releases are the releases of ZooKeeper in the corpus, oldest first.
var Releases = []string{"3.4.14", "3.5.10", "3.6.4", "3.8.4", "3.9.5"}

//go:embed testdata
var archives embed.FS

// Znode is a znode as ZooKeeper served it. ACL is in the format of package fmt.
type Znode struct {
	Data []byte
	Stat proto.Stat
	ACL  string
}

// Unpack returns a new directory with the files of a server, and what it served after its restart,
// by path.
func Unpack(t testing.TB, release string) (dir string, served map[string]Znode) {
	t.Helper()
	dir = t.TempDir()
	err := must.Try(func() {
		z := must.Get(gzip.NewReader(bytes.NewReader(must.Get(archives.ReadFile("testdata/" + release + ".tar.gz")))))
		must.Do(os.Mkdir(filepath.Join(dir, "version-2"), 0o755))
		for in := tar.NewReader(z); ; {
			h, err := in.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			must.Do(err)
			b := must.Get(io.ReadAll(in))
			if h.Name == "expect.json" {
				must.Do(json.Unmarshal(b, &served))
			} else {
				must.Do(os.WriteFile(filepath.Join(dir, filepath.FromSlash(h.Name)), b, 0o644))
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir, served
}
