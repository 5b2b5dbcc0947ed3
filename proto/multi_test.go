package proto_test

import (
	"testing"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
)

// TestMultiResponse_Limit: a result takes 9 bytes in a frame and many more in memory, so a client
// takes no more results than it has asked for.
func TestMultiResponse_Limit(t *testing.T) {
	var b []byte
	for range 1000 {
		b = proto.AppendMultiHeader(b, proto.OpCheck, false, 0)
	}
	b = proto.AppendMultiHeader(b, -1, true, -1)
	for limit, want := range map[int]int{0: 0, 10: 10, 1000: 1000, 1001: 1000} {
		d := jute.NewDecoder(b)
		var r proto.MultiResponse
		if err := r.DecodeAtMost(&d, limit); len(r.Results) != want || (err == nil) != (want == 1000) {
			t.Errorf("limit %d: %d results, %v", limit, len(r.Results), err)
		}
	}
}
