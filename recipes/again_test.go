package recipes_test

import (
	"testing"
	"time"

	"github.com/gozkd/gozkd/recipes/internal/recipetest"
)

// TestWatch_FiresAgain: where go-zookeeper may set a watch again too late, which Connect's connections prevent, it fires with the new
// connection, and who reads then arms another.
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
					t.Errorf("%v: another watch, %v", kind, err)
				}
				w.CloseConnections()
				time.Sleep(5 * time.Second)
				select {
				case <-fires:
					if kind == recipetest.Connect {
						t.Error("it fired, and nothing has changed")
					}
				default:
					if kind == recipetest.Wrap {
						t.Error("it did not fire")
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
