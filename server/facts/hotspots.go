package facts

import (
	"fmt"
	"strings"

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

// HotClient is a session. Its address is empty if it is no longer connected to this server.
type HotClient struct {
	Address string  `json:"address"`
	Session string  `json:"session"` // as 0x…
	Reads   float64 `json:"reads"`   // requests per second
	Writes  float64 `json:"writes"`
}

// String returns the line that the hotp word answers, JSON without the line end. It is put together
// here because encoding/json would add a quarter of a megabyte to every program with a server.
func (h HotSpots) String() string {
	paths, clients := make([]string, len(h.Paths)), make([]string, len(h.Clients))
	for i, p := range h.Paths {
		paths[i] = fmt.Sprintf(`{"path":%s,"reads":%v,"writes":%v}`, printable.Quoted(p.Path), p.Reads, p.Writes)
	}
	for i, c := range h.Clients {
		clients[i] = fmt.Sprintf(`{"address":%s,"session":%s,"reads":%v,"writes":%v}`,
			printable.Quoted(c.Address), printable.Quoted(c.Session), c.Reads, c.Writes)
	}
	return fmt.Sprintf(`{"paths":[%s],"clients":[%s],"window_s":%d}`, strings.Join(paths, ","), strings.Join(clients, ","), h.Window)
}
