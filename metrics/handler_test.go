package metrics_test

import (
	"fmt"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/internal/version"
	"github.com/gozkd/gozkd/metrics"
	"github.com/gozkd/gozkd/server"
)

// A scrape has the metrics of the server, of the Go runtime and of the process, and after Close
// only the last two.
func TestHandler(t *testing.T) {
	s := start(t, server.Config{})
	handler := metrics.Handler(s.Facts())
	scrape := func() string {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
		if answer.Code != 200 {
			t.Errorf("status %d", answer.Code)
		}
		return answer.Body.String()
	}
	v := version.Get()
	build := fmt.Sprintf("\ngozkd_build_info{dirty=%q,goversion=%q,revision=%q,version=%q} 1\n", fmt.Sprint(v.Dirty), runtime.Version(), v.Revision, v.Number)
	if text := scrape(); !strings.Contains(text, "\nznode_count 5\n") || !strings.Contains(text, build) || !strings.Contains(text, "\ngo_goroutines ") {
		t.Error(text)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if text := scrape(); strings.Contains(text, "znode_count") || !strings.Contains(text, "\ngo_goroutines ") {
		t.Error(text)
	}
}
