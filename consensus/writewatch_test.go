package consensus

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
)

// A write that takes too long is logged when it does and when it ends; others are not.
func TestWriteWatch_LogsBothEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		w := &writeWatch{limit: time.Second, logger: hclog.New(&hclog.LoggerOptions{Output: &out, DisableTime: true})}
		write := func(took time.Duration) {
			w.begin()
			time.Sleep(took)
			synctest.Wait()
			w.end()
		}
		for range 10 {
			write(900 * time.Millisecond)
		}
		if out.Len() > 0 {
			t.Errorf("of writes that took no second: %s", &out)
		}
		w.begin()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if pending, stalls := w.state(); pending != 5*time.Second || stalls != 1 || !strings.Contains(out.String(), "[WARN]  the disk of the log does not answer") {
			t.Errorf("%v, %d, %s", pending, stalls, &out)
		}
		w.end()
		write(time.Millisecond)
		if pending, stalls := w.state(); pending != 0 || stalls != 1 || strings.Count(out.String(), "\n") != 2 || !strings.Contains(out.String(), "answers again: after_ms=5000") {
			t.Errorf("%v, %d, %s", pending, stalls, &out)
		}
	})
}
