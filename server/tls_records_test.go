package server_test

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"testing"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/server"
)

// When the server falls silent, the last reply or event has begun a record of its own: a client
// that waits for its socket before it reads each frame would not notice a frame that it has
// received in the record of another one.
func TestTLS_TheLastFrameBeginsARecord(t *testing.T) {
	c := newCerts(t)
	cfg := server.Config{TLS: c.server(t, tls.NoClientCert)}
	for name, version := range map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13} {
		with := c.client(t, "")
		with.MinVersion, with.MaxVersion = version, version
		t.Run(name+" on a socket", func(t *testing.T) {
			s := startTLS(t, cfg, cfg.TLS)
			dialTLS(t, s.SecureAddr(), with).checkRecords()
		})
		t.Run(name+" in memory", func(t *testing.T) {
			tlsBubble(t, cfg, func(t *testing.T, _ *server.Server, dial func(string, string, *tls.Config) *raw) {
				dial("client", "zk:2281", with).checkRecords()
			})
		})
	}
}

// checkRecords asks for short and long replies and for events, many at once.
func (r *raw) checkRecords() {
	r.t.Helper()
	r.connect(60_000, 0, nil)
	r.call(1, proto.OpCreate, create{path: "/large"})
	r.call(1, proto.OpSetData, &proto.SetDataRequest{Path: "/large", Data: bytes.Repeat([]byte("x"), 100_000), Version: -1})
	read := encodeRequest(2, proto.OpExists, &proto.PathWatchRequest{Path: "/large", Watch: true})
	large := encodeRequest(3, proto.OpGetData, &proto.PathWatchRequest{Path: "/large"})
	remove := encodeRequest(4, proto.OpDelete, &proto.PathVersionRequest{Path: "/large", Version: -1})
	few := [][]byte{read, read}
	var many [][]byte
	for range 1000 { // 84 kB of replies
		many = append(many, read)
	}
	for _, c := range []struct {
		requests [][]byte
		frames   int
	}{
		{few, 2}, {many, len(many)}, {[][]byte{read, large}, 2}, {[][]byte{large, large, read, read}, 4}, {[][]byte{read, remove}, 3},
	} {
		r.burst(c.requests...)
		if begun := r.lastBeginsRecord(c.frames); !begun {
			r.t.Errorf("of the %d frames after %d requests the last one shares its record with others", c.frames, len(c.requests))
		}
	}
}

// lastBeginsRecord reads that many frames, and reports whether the last one began a record.
func (r *raw) lastBeginsRecord(frames int) (begun bool) {
	r.t.Helper()
	b := make([]byte, 64<<10)
	var head []byte // of a frame, whose length is incomplete
	for left := 0; frames > 0; {
		n, err := r.nc.Read(b) // of a single record
		if err != nil {
			r.t.Fatalf("%d frames are missing: %v", frames, err)
		}
		begun = begun && (left > 0 || len(head) > 0)
		for at := 0; at < n; {
			if left == 0 {
				begun = begun && len(head) > 0 || at == 0 && len(head) == 0
				part := min(4-len(head), n-at)
				head = append(head, b[at:at+part]...)
				if at += part; len(head) == 4 {
					left, head = int(binary.BigEndian.Uint32(head)), head[:0]
				}
				continue
			}
			part := min(left, n-at)
			at, left = at+part, left-part
			if left == 0 {
				frames--
			}
		}
	}
	return begun
}
