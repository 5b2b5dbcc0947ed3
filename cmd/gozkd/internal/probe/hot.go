package probe

import (
	"encoding/json"
	"fmt"
)

// HotWord is the word of gozkd that tells what is asked for most, and by whom. ZooKeeper has no such word, closes the connection
// on it and logs a warning.
const HotWord = "hotp"

// Hot is what hotp says. Rates are per second over the last WindowS seconds, the hottest first.
type Hot struct {
	Paths   []HotPath   `json:"paths"`
	Clients []HotClient `json:"clients"`
	WindowS float64     `json:"window_s"`
}

// HotPath is a znode that is often read or written.
type HotPath struct {
	Path   string  `json:"path"`
	Reads  float64 `json:"reads"`
	Writes float64 `json:"writes"`
}

// HotClient is a connection that often reads or writes.
type HotClient struct {
	Address string `json:"address"`
	// Session is in hex, with 0x in front.
	Session string  `json:"session"`
	Reads   float64 `json:"reads"`
	Writes  float64 `json:"writes"`
}

// ParseHot reads an answer to hotp.
func ParseHot(hotp string) (Hot, error) {
	var h Hot
	if err := json.Unmarshal([]byte(hotp), &h); err != nil {
		return Hot{}, fmt.Errorf("%s is not JSON: %w", HotWord, err)
	}
	// Sums of what is told must be numbers that JSON has.
	const most = 1e15
	ok := h.WindowS >= 0 && h.WindowS <= most
	for _, p := range h.Paths {
		ok = ok && min(p.Reads, p.Writes) >= 0 && max(p.Reads, p.Writes) <= most
	}
	for _, c := range h.Clients {
		ok = ok && min(c.Reads, c.Writes) >= 0 && max(c.Reads, c.Writes) <= most
	}
	if !ok {
		return Hot{}, fmt.Errorf("%s tells of rates that can't be", HotWord)
	}
	return h, nil
}
