package shell

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

func testEnv(in string, out, err io.Writer, env map[string]string) cli.Env {
	return cli.Env{In: strings.NewReader(in), Out: out, Err: err, Getenv: func(name string) string { return env[name] }}
}

// lockedBuffer is a bytes.Buffer that is safe for concurrent use. Tests can wait for its content.
type lockedBuffer struct {
	mu      sync.Mutex
	buf     bytes.Buffer
	changed chan struct{} // closed by the next Write, if a test waits
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// await waits until text has been written.
func (b *lockedBuffer) await(t *testing.T, text string) {
	t.Helper()
	b.awaitTimes(t, text, 1)
}

// awaitTimes waits until text has been written n times.
func (b *lockedBuffer) awaitTimes(t *testing.T, text string, n int) {
	t.Helper()
	late := watchdog.After(t, 10*time.Second)
	for {
		b.mu.Lock()
		if strings.Count(b.buf.String(), text) >= n {
			b.mu.Unlock()
			return
		}
		if b.changed == nil {
			b.changed = make(chan struct{})
		}
		changed := b.changed
		b.mu.Unlock()
		select {
		case <-changed:
		case <-late:
			t.Fatalf("%q was not written %d times; this was:\n%s", text, n, b.String())
		}
	}
}
