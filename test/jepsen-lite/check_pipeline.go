package jepsenlite

import (
	"fmt"
	"path"
	"strconv"

	"github.com/gozkd/gozkd/proto"
)

// findPipeline: the n-th set of a connection creates version n, so none was lost, repeated or
// reordered. In the end the znode's data is the number of its last set.
func findPipeline(h []*Record, found func(string, ...*Record)) {
	acked, sent := map[string]*Record{}, map[string]int{} // by path: the last acknowledged one; the highest number
	created := map[string]*Record{}
	for _, r := range h {
		if !isOf(r, loadPipeline) || path.Base(path.Dir(r.Path())) != loadPipeline {
			continue
		}
		p := &r.Parts[0]
		switch r.Op {
		case proto.OpCreate:
			created[p.Path] = r
		case proto.OpSetData:
			n, err := strconv.Atoi(p.Data)
			if err != nil {
				continue
			}
			sent[p.Path] = max(sent[p.Path], n)
			if !r.OK() {
				continue
			}
			acked[p.Path] = r
			if int(p.Stat.Version) != n {
				found(fmt.Sprintf("set %d of %s made version %d", n, p.Path, p.Stat.Version), r)
			}
		}
	}
	read := map[string]bool{}
	var looked *Record // the final look
	for _, r := range h {
		if isOf(r, loadFinal) && r.OK() && r.Op == proto.OpGetChildren2 && path.Base(r.Path()) == loadPipeline {
			looked = r
		}
		if !isOf(r, loadFinal) || !r.OK() || r.Op != proto.OpGetData || path.Base(path.Dir(r.Path())) != loadPipeline {
			continue
		}
		p := &r.Parts[0]
		read[p.Path] = true
		// Only the create succeeded: no data.
		n, err := strconv.Atoi(p.Got)
		if err != nil && p.Got != "" || n != int(p.Stat.Version) || n > sent[p.Path] {
			found(fmt.Sprintf("%s holds %q with version %d, %d were sent", p.Path, p.Got, p.Stat.Version, sent[p.Path]), r)
		}
		if a := acked[p.Path]; a != nil && n < int(a.Parts[0].Stat.Version) {
			found(fmt.Sprintf("%s holds %d, but %d was acknowledged", p.Path, n, a.Parts[0].Stat.Version), a, r)
		}
		if c := created[p.Path]; c == nil {
			found(p.Path+" is there, and nobody made it", r)
		}
	}
	for p, c := range created {
		if looked != nil && c.OK() && !read[p] {
			found(p+" is gone", c, looked)
		}
	}
}
