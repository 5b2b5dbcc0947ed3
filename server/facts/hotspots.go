package facts

import (
	"encoding/json"
	"fmt"

	"github.com/gozkd/gozkd/internal/printable"
)

// HotSpots are the paths and clients with the most requests on one server, the hottest first, at
// most 20 of each. Equally hot paths and clients are ordered by path and by session.
//
// The rates are requests per second over the last Window whole seconds. They are exact up to about
// a thousand requests per second, and estimated from a sample above that: the rate of a path with a
// hundredth of all requests is then off by about a tenth. Reads are requests that change nothing,
// including syncs. Pings, authentication, and the creation and closing of sessions are not counted.
type HotSpots struct {
	Paths   []HotPath   `json:"paths"`
	Clients []HotClient `json:"clients"`
	Window  int         `json:"window_s"` // 10, or less in the first seconds of a server
}

// HotPath is a path as clients named it, whether or not a znode exists there, cut off after 256
// bytes. A multi counts for each path in it.
type HotPath struct {
	Path   string  `json:"path"`
	Reads  float64 `json:"reads"` // per second
	Writes float64 `json:"writes"`
}

// HotClient is a session. Its address is empty if the session is no longer connected to this
// server.
type HotClient struct {
	Address string  `json:"address"`
	Session string  `json:"session"` // as 0x…
	Reads   float64 `json:"reads"`   // requests per second
	Writes  float64 `json:"writes"`
}

// String returns the line that the hotp word answers, without the line end.
func (h HotSpots) String() string {
	b, err := json.Marshal(h)
	if err != nil { // cannot happen: rates are finite
		return fmt.Sprintf("{%q: %q}", "error", err)
	}
	return printable.JSON(b)
}
