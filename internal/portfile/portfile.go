// Package portfile is the file in which a program says where it listens, once it does.
package portfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/gozkd/gozkd/internal/vfs"
)

// Ports is the content of a port file.
type Ports struct {
	ID      int      `json:"id,omitempty"`     // of servers that a request to gozkd-testkit started
	Client  string   `json:"client"`           // connect string
	Secure  string   `json:"secure,omitempty"` // the same, for TLS
	Members []Member `json:"members,omitempty"`
	Admin   string   `json:"admin,omitempty"`   // URL of the admin commands
	Metrics string   `json:"metrics,omitempty"` // URL of the endpoint for Prometheus
	Faults  string   `json:"faults,omitempty"`  // URL of gozkd-testkit's requests
}

// Member is where a member of an ensemble in one process listens.
type Member struct {
	ID     int    `json:"id"`
	Client string `json:"client"`
}

// Write writes p as a line of JSON. The file appears complete, so that a process that waits for the
// file can read it at once. Without a path there is no file.
func (p Ports) Write(path string) error {
	if path == "" {
		return nil
	}
	err := vfs.WriteWhole(path, ".ports-*", func(f *os.File) error {
		return errors.Join(f.Chmod(0o644), json.NewEncoder(f).Encode(p))
	})
	if err != nil {
		return fmt.Errorf("port file: %w", err)
	}
	return nil
}

// Remove removes the file that Write has written, as the program ends: a process that waits for the
// next start must not find it. The file of a program that started later stays.
func (p Ports) Remove(path string) {
	own, _ := json.Marshal(p) // strings and numbers can always be encoded
	if content, err := os.ReadFile(path); err == nil && string(content) == string(own)+"\n" {
		_ = os.Remove(path) // the directory may be gone
	}
}
