package zktest

import (
	"bytes"
	"fmt"
	"sync"
)

// maxLog is how many bytes of the servers' log are kept, from its end.
const maxLog = 1 << 20

type logs struct {
	mu   sync.Mutex
	text []byte
	lost int
}

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.text = append(l.text, b...); len(l.text) > 2*maxLog {
		cut := len(l.text) - maxLog
		if end := bytes.IndexByte(l.text[cut:], '\n'); end >= 0 {
			cut += end + 1
		}
		l.lost += cut
		l.text = append([]byte(nil), l.text[cut:]...)
	}
	return len(b), nil
}

func (l *logs) Printf(format string, args ...any) {
	_, _ = fmt.Fprintf(l, "client: "+format+"\n", args...) // never fails
}

// end returns the number of bytes logged so far.
func (l *logs) end() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost + len(l.text)
}

// from returns what was logged after the first logStart bytes, as far as it is kept.
func (l *logs) from(logStart int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost > logStart {
		return fmt.Sprintf("(%d bytes before)\n%s", l.lost-logStart, l.text)
	}
	return string(l.text[logStart-l.lost:])
}
