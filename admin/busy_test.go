package admin

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/server"
)

// Answers that may be long are made a few at a time. Others wait for a moment, unless the client
// leaves; what is short does not wait.
func TestAnswer_Busy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := server.New(server.Config{InProcess: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}()
		h := New(s, Options{}).(*handler)
		ask := func(ctx context.Context, command string, status int, after time.Duration) {
			t.Helper()
			begin, w := time.Now(), httptest.NewRecorder()
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/commands/"+command, nil)
			r.RemoteAddr, r.Host = "127.0.0.1:1", "localhost"
			if h.ServeHTTP(w, r); w.Code != status || time.Since(begin) != after {
				t.Errorf("%s: status %d after %v, want %d after %v", command, w.Code, time.Since(begin), status, after)
			}
		}
		for range longAnswers {
			h.long <- struct{}{}
		}
		ask(t.Context(), "connections", 503, busyPatience)
		ask(t.Context(), "ruok", 200, 0)
		left, leave := context.WithCancel(t.Context())
		leave()
		ask(left, "dump", 503, 0)
		<-h.long
		ask(t.Context(), "connections", 200, 0)
		ask(t.Context(), "connections", 200, 0)
	})
}
