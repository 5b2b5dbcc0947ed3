package consensus

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
)

// A write during which the process stood still, so that the timer is late, is none that the disk
// does not answer: it has its whole time again.
func TestWriteWatch_Standstill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		w := &writeWatch{limit: time.Second, logger: hclog.New(&hclog.LoggerOptions{Output: &out, DisableTime: true})}
		for _, first := range []func(){w.late, func() { w.state() }} {
			w.begin()
			w.timer.Stop()
			time.Sleep(8 * time.Second)
			first() // as the timer, or who asks for the metrics, does after the standstill
			if pending, stalls := w.state(); pending != 0 || stalls != 0 || out.Len() > 0 {
				t.Errorf("%v, %d, %s", pending, stalls, &out)
			}
			time.Sleep(900 * time.Millisecond)
			w.end()
		}
		w.begin()
		w.timer.Stop()
		time.Sleep(8 * time.Second)
		w.late()
		time.Sleep(time.Second)
		synctest.Wait()
		if pending, stalls := w.state(); pending != time.Second || stalls != 1 || !strings.Contains(out.String(), "does not answer") {
			t.Errorf("%v, %d, %s: the disk has not answered since the standstill", pending, stalls, &out)
		}
		w.end()
	})
}

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
