// Package logbuf collects the log or the output of goroutines that still run while a test reads it.
package logbuf

import (
	"bytes"
	"strings"
	"sync"
)

// Buffer is safe for concurrent use. The zero value is empty.
type Buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write appends p.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// String returns the text written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// Count returns how often text has been written so far.
func (b *Buffer) Count(text string) int { return strings.Count(b.String(), text) }
