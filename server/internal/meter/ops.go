package meter

import (
	"strings"

	"github.com/gozkd/gozkd/internal/printable"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// RequestPath returns the path with which the body of a request begins, sharing its memory; for a
// multi the path of its first part.
func RequestPath(op proto.OpCode, body []byte) (path string, ok bool) {
	d := jute.NewDecoder(body)
	d.AliasStrings()
	switch op.Info().Path {
	case proto.PathNone:
		return "", false
	case proto.PathEach:
		d.Int() // the header of the first part: op, whether it is the end, error
		d.Bool()
		d.Int()
	}
	path = d.RequiredString()
	return path, d.Err() == nil
}

// samplePaths returns the paths that a request names, cut off and copied.
func samplePaths(op proto.OpCode, body []byte) []string {
	d := jute.NewDecoder(body)
	d.AliasStrings()
	switch op.Info().Path {
	case proto.PathFirst:
		if path := d.NullString(); d.Err() == nil && path != nil {
			return []string{strings.Clone(printable.Shortened(*path, maxSampledPath))}
		}
	case proto.PathEach:
		var m proto.MultiRequest
		if len(body) > maxSampledMulti || m.Decode(&d, op) != nil {
			return nil
		}
		paths := make([]string, len(m.Ops))
		for i := range m.Ops {
			paths[i] = strings.Clone(printable.Shortened(m.Ops[i].Path, maxSampledPath))
		}
		return paths
	}
	return nil
}
