package link

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/gozkd/gozkd/proto/jute"
)

// A frame that two connections share as their output does not change when something is appended to
// one of them, or when buffers return to the pool.
func TestOutput_SharedFrame(t *testing.T) {
	frame := bytes.Repeat([]byte{7}, 50)
	frame = frame[:50:50]
	want := bytes.Clone(frame)
	var one, other Output
	one.AppendShared(frame)
	other.AppendShared(frame)
	if &one.Buf[0] != &frame[0] || &other.Buf[0] != &frame[0] {
		t.Error("copied where nothing was on the output")
	}
	one.Buf = append(one.Buf, "a reply"...)
	if !bytes.Equal(one.Buf[:len(frame)], want) || !bytes.Equal(other.Buf, want) {
		t.Errorf("a reply behind the event of one:\n%x\n%x\nwant\n%x", one.Buf, other.Buf, want)
	}
	putOutput(other.Buf)
	for range 10 {
		var o Output
		o.Borrow()
		o.Buf = append(o.Buf, bytes.Repeat([]byte{0xff}, minPooledOutput)...)
	}
	if !bytes.Equal(frame, want) {
		t.Errorf("the frame became\n%x\nwant\n%x", frame, want)
	}
}

// A frame as long as a pooled buffer is copied, because it could not be told from such a buffer.
func TestOutput_LongFrame(t *testing.T) {
	frame := make([]byte, minPooledOutput)
	var o Output
	o.AppendShared(frame)
	if &o.Buf[0] == &frame[0] {
		t.Error("shared")
	}
	if !bytes.Equal(o.Buf, frame) {
		t.Errorf("%d bytes, want %d", len(o.Buf), len(frame))
	}
}

// Large data is sent without being copied, and every byte in its place, however few bytes the
// socket takes at once and whatever is appended meanwhile.
func TestOutput_SharesLargeData(t *testing.T) {
	large := [][]byte{bytes.Repeat([]byte{1}, ShareBytes), bytes.Repeat([]byte{2}, ShareBytes+1), nil, make([]byte, ShareBytes-1)}
	var o Output
	var want, got []byte
	for i, data := range large {
		m := o.Mark()
		o.Buf = append(o.Buf, 0, 0, 0, 0, byte(i))
		o.AppendData(data)
		o.Buf = append(o.Buf, 99)
		o.EndFrame(m)
		body := append(jute.AppendBuffer([]byte{byte(i)}, data), 99)
		want = append(binary.BigEndian.AppendUint32(want, uint32(len(body))), body...)
		m = o.Mark()
		o.AppendData(large[0])
		o.Truncate(m)
	}
	if len(o.shared) != 2 || &o.shared[0].data[0] != &large[0][0] {
		t.Fatalf("%d of 2 large values are shared", len(o.shared))
	}
	later := Output{Buf: []byte{7, 7}}
	later.AppendData(large[1])
	want = append(append(want, 7, 7), jute.AppendBuffer(nil, large[1])...)
	for step := 1; o.Len() > 0; step = step*3%5003 + 1 {
		if n := len(want) - len(got); o.Len() != n && later.Len() == 0 {
			t.Fatalf("%d bytes are left, want %d", o.Len(), n)
		}
		b, more := o.Next()
		if last := len(got)+len(b) == len(want); more == last {
			t.Fatalf("after %d of %d bytes come %d: more is %v", len(got), len(want), len(b), more)
		}
		n := min(step, len(b))
		got = append(got, b[:n]...)
		if o.Advance(n); later.Len() > 0 {
			o.AppendOutput(later)
			later = Output{}
		}
	}
	if !bytes.Equal(got, want) {
		t.Error("the bytes differ")
	}
}
