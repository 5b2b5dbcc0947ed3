package shared

import (
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf16"

	"github.com/gozkd/gozkd/recipes"
)

// The layout of kazoo's leases: a child of the path has the holder and the end, as JSON.
const (
	holderName  = "lease_holder"
	leaseFormat = 1
	leaseTime   = "2006-01-02T15:04:05" // UTC
)

// encodeLease returns the bytes that Python's json.dumps writes.
func encodeLease(holder string, end time.Time) []byte {
	b := fmt.Appendf(nil, `{"version": %d, "holder": `, leaseFormat)
	b = appendPython(b, holder)
	return fmt.Appendf(b, `, "end": "%s"}`, end.UTC().Format(leaseTime))
}

func decodeLease(data []byte) (holder string, end time.Time, err error) {
	var l struct {
		Version int    `json:"version"`
		Holder  string `json:"holder"`
		End     string `json:"end"`
	}
	if err = json.Unmarshal(data, &l); err == nil && l.Version != leaseFormat {
		err = fmt.Errorf("version %d", l.Version)
	}
	if err == nil {
		end, err = time.Parse(leaseTime, l.End)
	}
	if err != nil {
		return "", time.Time{}, fmt.Errorf("%w: %w", recipes.ErrFormat, err)
	}
	return l.Holder, end, nil
}

// appendPython appends a string in Python's JSON: everything except printable ASCII is escaped.
func appendPython(b []byte, s string) []byte {
	short := map[rune]byte{'"': '"', '\\': '\\', '\n': 'n', '\r': 'r', '\t': 't', '\f': 'f', '\b': 'b'}
	b = append(b, '"')
	for _, r := range s {
		if c, ok := short[r]; ok {
			b = append(b, '\\', c)
			continue
		}
		if r >= ' ' && r <= '~' {
			b = append(b, byte(r))
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			b = fmt.Appendf(b, `\u%04x`, unit)
		}
	}
	return append(b, '"')
}
