package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/proto"
)

// corpusZnode is a znode in expect.json of an archive, as the restarted ZooKeeper served the znode.
type corpusZnode struct {
	Data []byte // null: null
	Stat proto.Stat
	ACL  string
}

// newestFiles returns the names of the two newest snapshots and of the logs after the older of
// them.
func newestFiles(dir string) []string {
	snapshots, logs := filesByZxid(dir, "snapshot"), filesByZxid(dir, "log")
	snapshots = snapshots[max(0, len(snapshots)-2):]
	first := 0
	for i, name := range logs {
		if zxidOf(name) <= zxidOf(snapshots[0])+1 {
			first = i
		}
	}
	return append(snapshots, logs[first:]...)
}

// filesByZxid returns the names of the snapshots or logs in dir, the oldest first.
func filesByZxid(dir, kind string) (names []string) {
	for _, e := range must.Get(os.ReadDir(dir)) {
		if strings.HasPrefix(e.Name(), kind+".") {
			names = append(names, e.Name())
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(zxidOf(a), zxidOf(b)) })
	return names
}

func zxidOf(name string) uint64 {
	return must.Get(strconv.ParseUint(strings.Split(name, ".")[1], 16, 64))
}

// corpus writes an archive per release for internal/testkit/zkcorpus: the files of a server that
// was killed under a little load, and the znodes that the server had after its restart.
func (w *world) corpus(to, release string, n int) {
	data := filepath.Join(w.work, "corpus-"+release)
	k := keys(compressions[n%len(compressions)])
	k["snapCount"], k["preAllocSize"] = "60", "16"
	zk := w.start(release, data, k)
	l := startLoad(w.ctx, zk.Addr(), release, w.rng, 2, 1000)
	must.Do(l.awaitEnough(w.ctx))
	must.Do(zk.Kill())
	l.wait()
	var archive bytes.Buffer
	z := must.Get(gzip.NewWriterLevel(&archive, gzip.BestCompression))
	t := tar.NewWriter(z)
	add := func(name string, content []byte) {
		must.Do(t.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))}))
		must.Get(t.Write(content))
	}
	for _, name := range newestFiles(filepath.Join(data, "version-2")) {
		add("version-2/"+name, must.Get(os.ReadFile(filepath.Join(data, "version-2", name))))
	}
	zk = w.start(release, data, k)
	expect, logged := make(map[string]corpusZnode), loggedACLs(data)
	for path, z := range readTree(w.ctx, zk.Addr()) {
		if acl := logged[path]; acl != "" && acl != z.acl {
			must.Failf("%s has ACL %s, the log says %s: see compareTrees; try again", path, z.acl, acl)
		}
		znode := corpusZnode{Stat: z.stat, ACL: z.acl}
		if !z.null {
			znode.Data = []byte(z.data)
		}
		expect[path] = znode
	}
	must.Do(zk.Kill())
	add("expect.json", must.Get(json.Marshal(expect)))
	must.Do(t.Close())
	must.Do(z.Close())
	must.Do(os.MkdirAll(to, 0o755))
	must.Do(os.WriteFile(filepath.Join(to, release+".tar.gz"), archive.Bytes(), 0o644))
	fmt.Printf("%s: %d znodes, %d bytes\n", release, len(expect), archive.Len())
}
