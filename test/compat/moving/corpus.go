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
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/proto"
)

// corpusZnode is a znode in expect.json of an archive, as the ZooKeeper served it after its restart.
type corpusZnode struct {
	Data []byte // null: null
	Stat proto.Stat
	ACL  string
}

// newestFiles returns the names of the two newest snapshots and of the logs after the older of them.
func newestFiles(dir string) (names []string) {
	zxid := func(name string) uint64 { return must.Get(strconv.ParseUint(strings.Split(name, ".")[1], 16, 64)) }
	var snapshots, logs []string
	for _, e := range must.Get(os.ReadDir(dir)) {
		switch kind, _, _ := strings.Cut(e.Name(), "."); kind {
		case "snapshot":
			snapshots = append(snapshots, e.Name())
		case "log":
			logs = append(logs, e.Name())
		}
	}
	byZxid := func(a, b string) int { return cmp.Compare(zxid(a), zxid(b)) }
	slices.SortFunc(snapshots, byZxid)
	slices.SortFunc(logs, byZxid)
	snapshots = snapshots[max(0, len(snapshots)-2):]
	first := 0
	for i, name := range logs {
		if zxid(name) <= zxid(snapshots[0])+1 {
			first = i
		}
	}
	return append(snapshots, logs[first:]...)
}

// corpus writes an archive per release for internal/testkit/zkcorpus: what a server
// under a little load left behind when it was killed, and what it served after its restart.
func (w *world) corpus(to, release string, n int) {
	data := filepath.Join(w.work, "corpus-"+release)
	k := keys(compressions[n%len(compressions)])
	k["snapCount"], k["preAllocSize"] = "60", "16"
	zk := w.start(release, data, k)
	l := startLoad(w.ctx, zk.Addr(), release, w.rng, 2)
	must.Do(sleep(w.ctx, 400*time.Millisecond))
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
