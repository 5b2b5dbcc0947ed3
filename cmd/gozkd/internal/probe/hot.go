package probe

import (
	"encoding/json"
	"fmt"
)

// HotWord is gozkd's word for the paths and clients with the most requests. ZooKeeper closes the
// connection on it and logs a warning.
const HotWord = "hotp"

// Hot is the answer to hotp. Rates are per second over the last WindowS seconds, highest first.
type Hot struct {
	Paths   []HotPath   `json:"paths"`
	Clients []HotClient `json:"clients"`
	WindowS float64     `json:"window_s"`
}

// HotPath is a path with many requests.
type HotPath struct {
	Path   string  `json:"path"`
	Reads  float64 `json:"reads"`
	Writes float64 `json:"writes"`
}

// HotClient is a connection with many requests.
type HotClient struct {
	Address string `json:"address"`
	// Session is a hexadecimal number with 0x.
	Session string  `json:"session"`
	Reads   float64 `json:"reads"`
	Writes  float64 `json:"writes"`
}

// ParseHot parses the answer to hotp.
func ParseHot(hotp string) (Hot, error) {
	var h Hot
	if err := json.Unmarshal([]byte(hotp), &h); err != nil {
		return Hot{}, fmt.Errorf("%s: not JSON: %w", HotWord, err)
	}
	// Sums of rates must be finite: JSON has no other numbers.
	const most = 1e15
	ok := h.WindowS >= 0 && h.WindowS <= most
	for _, p := range h.Paths {
		ok = ok && min(p.Reads, p.Writes) >= 0 && max(p.Reads, p.Writes) <= most
	}
	for _, c := range h.Clients {
		ok = ok && min(c.Reads, c.Writes) >= 0 && max(c.Reads, c.Writes) <= most
	}
	if !ok {
		return Hot{}, fmt.Errorf("%s contains impossible rates", HotWord)
	}
	return h, nil
}
