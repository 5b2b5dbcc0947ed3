package jepsenlite

import (
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// decodeRequest decodes a request. An operation that no load uses has no parts.
func decodeRequest(frame []byte) *Record {
	d := jute.NewDecoder(frame)
	var h proto.RequestHeader
	h.Decode(&d)
	r := &Record{Xid: h.Xid, Op: h.Op}
	switch h.Op {
	case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL:
		var q proto.CreateRequest
		q.Decode(&d, h.Op)
		r.Parts = []Part{{Op: h.Op, Path: q.Path, Data: string(q.Data), Mode: q.Mode}}
	case proto.OpDelete:
		var q proto.PathVersionRequest
		q.Decode(&d)
		r.Parts = []Part{{Op: h.Op, Path: q.Path, Version: q.Version}}
	case proto.OpSetData:
		var q proto.SetDataRequest
		q.Decode(&d)
		r.Parts = []Part{{Op: h.Op, Path: q.Path, Data: string(q.Data), Version: q.Version}}
	case proto.OpExists, proto.OpGetData, proto.OpGetChildren, proto.OpGetChildren2:
		var q proto.PathWatchRequest
		q.Decode(&d)
		r.Parts = []Part{{Op: h.Op, Path: q.Path}}
		r.Watch = q.Watch
	case proto.OpSync:
		var q proto.PathRequest
		if q.Decode(&d); q.Path != nil {
			r.Parts = []Part{{Op: h.Op, Path: *q.Path}}
		}
	case proto.OpMulti:
		var q proto.MultiRequest
		if q.Decode(&d, h.Op) == nil {
			for _, o := range q.Ops {
				r.Parts = append(r.Parts, Part{Op: o.Op, Path: o.Path, Data: string(o.Data), Version: o.Version, Mode: o.Mode})
			}
		}
	case proto.OpSetWatches, proto.OpSetWatches2:
		var q proto.SetWatchesRequest
		q.Decode(&d, h.Op)
		r.Relative, r.Data, r.Exist, r.Child = q.RelativeZxid, q.Data, q.Exist, q.Child
		r.Recursive = q.PersistentRecursive
	}
	return r
}

// decodeReply adds the body of a reply. A failed multi has a body too.
func decodeReply(r *Record, d *jute.Decoder) {
	if r.Op == proto.OpMulti {
		var m proto.MultiResponse
		if m.Decode(d) != nil || len(m.Results) != len(r.Parts) {
			return
		}
		for i, res := range m.Results {
			p := &r.Parts[i]
			p.Made, p.Stat = res.Path, res.Stat
			if res.Op == proto.OpError {
				p.Err = res.Err
				if r.Err == proto.OK {
					r.Err = res.Err // the header of a failed multi may say OK
				}
			}
		}
		return
	}
	if r.Err != proto.OK || len(r.Parts) == 0 {
		return
	}
	p := &r.Parts[0]
	switch r.Op {
	case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL:
		var resp proto.CreateResponse
		resp.Decode(d, r.Op)
		p.Made, p.Stat = resp.Path, resp.Stat
	case proto.OpSetData, proto.OpExists:
		p.Stat.Decode(d)
	case proto.OpGetData:
		var resp proto.DataResponse
		resp.Decode(d)
		p.Got, p.Stat = string(resp.Data), resp.Stat
	case proto.OpGetChildren, proto.OpGetChildren2:
		var resp proto.ChildrenResponse
		resp.Decode(d, r.Op)
		p.Children, p.Stat = resp.Children, resp.Stat
	}
}
