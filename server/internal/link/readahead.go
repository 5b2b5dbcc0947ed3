package link

import (
	"bytes"
	"encoding/binary"
	"time"
)

// ReadAhead waits until that moment, until the link ends, or until in has whole frames that equal
// urgent, with its length; these become the next frames. Meanwhile the server holds the other
// frames back, and the client counts as heard from the bytes that it sends, as if all were handled.
//
// in takes up to InputBytes. Bytes that stay in the socket count when they arrive, see
// NoteProgress, and not again when they are read. A client that is not a socket counts as alive
// while in is full, because nobody knows.
func (in *Input) ReadAhead(l *Link, moment time.Time, urgent []byte) {
	if in.prefer(urgent) {
		return
	}
	l.HoldInput(in)
	unknown := l.nc.SetReadDeadline(moment) != nil
	if !unknown {
		l.handling.Store(false)
		l.holdsBack = true
		found := in.ahead(l, urgent)
		l.holdsBack = false
		_ = l.nc.SetReadDeadline(time.Time{}) // fails if the connection is closed
		if found {
			return
		}
	}
	if unknown || l.behind() || in.Len() >= InputBytes {
		l.Pause(moment)
		return
	}
	l.awaitUntil(moment)
}

// ahead reads until a frame is urgent, which it reports, until in is full, or until the deadline.
func (in *Input) ahead(l *Link, urgent []byte) (found bool) {
	// While more waits in the socket, it is not read for each frame that is handled.
	for in.Len() < InputBytes && (!l.behind() || in.Len() <= InputBytes/2) {
		had := in.Len()
		err := in.Fill(l)
		if in.Len() > had {
			l.NoteHeard(l.host.Now())
			if in.prefer(urgent) {
				return true
			}
		}
		if err != nil { // the deadline, or the end, which the next read finds again
			return false
		}
	}
	l.noteArrivals(l.host.Now())
	return false
}

// prefer makes the whole frames that equal urgent the next ones, and reports whether there are any.
// None overtakes a long frame, even if bytes of it are left out.
func (in *Input) prefer(urgent []byte) bool {
	if in.LeftOut > 0 || !bytes.Contains(in.Bytes(), urgent) { // much faster than to look at each frame
		return false
	}
	others, n := in.r, 0
	for at := in.r; in.w-at >= 4; {
		size := 4 + int(int32(binary.BigEndian.Uint32(in.buf[at:])))
		if size < 4 || size > in.w-at {
			break
		}
		frame := in.buf[at : at+size]
		if at += size; bytes.Equal(frame, urgent) {
			n++
		} else {
			others += copy(in.buf[others:], frame)
		}
	}
	copy(in.buf[in.r+n*len(urgent):], in.buf[in.r:others])
	copy(in.buf[in.r:], bytes.Repeat(urgent, n))
	return n > 0
}
