package faultproxy

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/gozkd/gozkd/proto"
)

// Without a matching rule any bytes pass unchanged, in pieces of any size (F1).
func FuzzHostileBytes(f *testing.F) {
	connect := slices.Clip(connectFrame(0))
	f.Add([]byte("ruok"), []byte("imok"), byte(1))
	f.Add([]byte{0xff, 0xf4, 0xff, 0xfd, 6}, []byte{}, byte(0))
	f.Add([]byte{0x7f, 0xff, 0xff, 0xff, 1, 2, 3}, welcomeFrame(1), byte(3))
	f.Add(append(connect, 0x80, 0, 0, 0, 1), append(welcomeFrame(1), 0, 0, 0, 3, 1, 2, 3), byte(5))
	f.Add(append(connect, requestFrame(1, proto.OpGetData, path("/a"))...), append(welcomeFrame(1), replyFrame(1, 2, 0, nil)...), byte(7))
	f.Add(append(connect, requestFrame(1, proto.OpMulti, multi("/a", "/b"))...), append(welcomeFrame(1), replyFrame(1, 2, 0, nil)...), byte(200))
	f.Add(append(connect, requestFrame(1, proto.OpGetData, bare{0x7f, 0xff, 0xff, 0xff, '/'})...), welcomeFrame(1)[:9], byte(2))
	for _, cut := range []int{3, 11, 20} { // the stream ends within a frame
		f.Add(append(connect, requestFrame(1, proto.OpGetData, path("/no fuzzer"))[:cut]...), append(welcomeFrame(1), replyFrame(1, 2, 0, nil)[:cut-1]...), byte(60))
	}
	f.Fuzz(func(t *testing.T, fromClient, fromServer []byte, piece byte) {
		var rules Rules
		for _, fault := range []Fault{
			{Kind: Fail, Op: OpAny, PathPrefix: "/no fuzzer comes up with this path by itself", Code: proto.ErrNoNode},
			{Kind: DropReply, Op: "watch", PathPrefix: "/nor is this one among those that it will try", Times: -1},
			{Kind: Delay, Op: OpConnect, Session: 0x1c32_9f70_aa55_1234, Delay: 1},
		} {
			if _, err := rules.Add(fault); err != nil {
				t.Fatal(err)
			}
		}
		n := int(piece) + 1
		inner := &script{in: fromClient, piece: func(most int) int { return min(n, most) }}
		c := newConn(NewGate(nil, &rules), inner)
		var got []byte
		for p := make([]byte, n); ; {
			m, err := c.Read(p)
			got = append(got, p[:m]...)
			if errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(got, fromClient) {
			t.Errorf("the server got %x, the client sent %x", got, fromClient)
		}
		for rest := fromServer; len(rest) > 0; {
			m, err := c.Write(rest[:min(n, len(rest))])
			if err != nil {
				t.Fatal(err)
			}
			rest = rest[m:]
		}
		if got := append(inner.out.Bytes(), c.w.begun...); !bytes.Equal(got, fromServer) || len(c.w.begun) >= replyBytes {
			t.Errorf("the client got %x, the server sent %x, %d bytes are held back", got, fromServer, len(c.w.begun))
		}
	})
}
