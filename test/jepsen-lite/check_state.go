package jepsenlite

import (
	"fmt"

	"github.com/gozkd/gozkd/proto"
)

// findOneState: replies that show the same path with the same mzxid show the same data and version,
// and a set or create has the zxid of its reply.
func findOneState(h []*Record, found func(string, ...*Record)) {
	type key struct {
		path  string
		mzxid proto.Zxid
	}
	type state struct {
		data    string
		version int32
		by      *Record
	}
	states := map[key]state{}
	note := func(r *Record, path string, mzxid proto.Zxid, data string, version int32) {
		k := key{path, mzxid}
		s, known := states[k]
		switch {
		case !known:
			states[k] = state{data, version, r}
		case s.data != data || s.version != version:
			found(fmt.Sprintf("%s as of %v is %q with version %d, and %q with version %d", path, mzxid, s.data, s.version, data, version), s.by, r)
		}
	}
	for _, r := range h {
		if !r.OK() {
			continue
		}
		for i := range r.Parts {
			switch p := &r.Parts[i]; p.Op {
			case proto.OpSetData:
				if p.Stat.Mzxid != r.Zxid {
					found(fmt.Sprintf("a set of %s with the zxid %v says that it was %v", p.Path, r.Zxid, p.Stat.Mzxid), r)
				}
				note(r, p.Path, r.Zxid, p.Data, p.Stat.Version)
			case proto.OpCreate, proto.OpCreate2:
				note(r, p.Made, r.Zxid, p.Data, 0)
			case proto.OpGetData:
				note(r, p.Path, p.Stat.Mzxid, p.Got, p.Stat.Version)
			}
		}
	}
}
