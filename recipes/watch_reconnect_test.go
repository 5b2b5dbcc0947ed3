package recipes_test

import (
	"testing"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
)

// TestWatch_FiresAgain checks that a watch of a wrapped connection fires after a reconnect, where
// go-zookeeper may re-register it too late, and that the next read arms another one. Connections of
// Connect do not need this.
func TestWatch_FiresAgain(t *testing.T) {
	for _, kind := range recipetest.Kinds() {
		recipetest.Run(t, 1, func(t testing.TB, w *recipetest.World) {
			c := w.Open(kind)
			w.Load(map[string]string{"/a": ""})
			for range 3 {
				_, _, fires, err := c.GetW(t.Context(), "/a")
				if err != nil {
					t.Fatal(err)
				}
				_, _, same, err := c.GetW(t.Context(), "/a")
				if err != nil || same != fires {
					t.Errorf("%v: the second read did not get the armed watch: %v", kind, err)
				}
				w.CloseConnections()
				time.Sleep(5 * time.Second)
				select {
				case <-fires:
					if kind == recipetest.Connect {
						t.Error("the watch fired without a change")
					}
				default:
					if kind == recipetest.Wrap {
						t.Error("the watch did not fire")
					}
				}
			}
			_, _, fires, err := c.GetW(t.Context(), "/a")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Set(t.Context(), "/a", nil, -1); err != nil {
				t.Fatal(err)
			}
			<-fires
		})
	}
}
