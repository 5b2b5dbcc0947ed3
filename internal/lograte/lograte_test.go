package lograte_test

import (
	"bytes"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/internal/lograte"
)

func TestLogger_Flood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		plain := hclog.New(&hclog.LoggerOptions{Output: &out, Level: hclog.Info, DisableTime: true})
		log := lograte.New(plain)
		lines := func() []string {
			defer out.Reset()
			return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		}
		for i := range 1000 {
			log.With("peer", i).Warn("refused")
			log.Named("sub").Error("failed", "n", i)
			log.Debug("not written")
		}
		got := lines()
		if len(got) != 2*lograte.Burst || got[0] != "[WARN]  refused: peer=0" || got[1] != "[ERROR] sub: failed: n=0" {
			t.Fatalf("%d lines: %q", len(got), got)
		}
		log.Info("another kind")
		if got := lines(); len(got) != 1 || got[0] != "[INFO]  another kind" {
			t.Errorf("another kind: %q", got)
		}
		for range 5 { // one line per interval
			time.Sleep(lograte.Interval)
			log.Warn("refused")
			log.Warn("refused")
		}
		got = lines()
		if len(got) != 5 || got[0] != "[WARN]  refused: suppressed=980" || got[4] != "[WARN]  refused: suppressed=1" {
			t.Errorf("afterwards: %q", got)
		}
		time.Sleep(time.Hour)
		for range 1000 {
			log.Warn("refused")
		}
		if got := lines(); len(got) != lograte.Burst || got[0] != "[WARN]  refused: suppressed=1" || got[1] != "[WARN]  refused" {
			t.Errorf("after an hour: %q", got)
		}
	})
}

// Lines that are not written because of their level do not count.
func TestLogger_Level(t *testing.T) {
	var out bytes.Buffer
	log := lograte.New(hclog.New(&hclog.LoggerOptions{Output: &out, Level: hclog.Error}))
	for range 1000 {
		log.Warn("refused")
	}
	log.SetLevel(hclog.Warn)
	log.Warn("refused")
	if n := strings.Count(out.String(), "refused"); n != 1 || strings.Contains(out.String(), "suppressed") {
		t.Errorf("%q", out.String())
	}
	log.SetLevel(hclog.Debug)
	for range 1000 {
		log.Debug("detail")
		log.Log(hclog.Trace, "detail")
	}
	if n := strings.Count(out.String(), "detail"); n != 1000 {
		t.Errorf("%d of 1000 debug lines, and no trace", n)
	}
}

// Messages that contain a stranger's text cost neither memory nor lines without a bound.
func TestLogger_ManyKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := lograte.New(hclog.New(&hclog.LoggerOptions{Output: &out}))
		for i := range 100_000 {
			log.Warn("text " + strconv.Itoa(i))
		}
		if n := strings.Count(out.String(), "\n"); n > 300 {
			t.Errorf("%d lines", n)
		}
	})
}
