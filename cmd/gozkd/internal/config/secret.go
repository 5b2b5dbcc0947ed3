package config

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime"
)

// Values of Config.PeerSecretMode.
const (
	RequireSecret = "require" // servers without the secret are refused
	PreferSecret  = "prefer"  // servers without a secret are accepted
)

const (
	// minSecret is the least that the server accepts, in bytes.
	minSecret = 16
	// maxSecretFile bounds the file with the secret, in bytes.
	maxSecretFile = 4096
)

// secret reads the file with the secret of the ensemble.
func (r *resolver) secret(c *Config) {
	const key = "gozkd.peer.secretFile"
	if c.PeerSecretFile == "" {
		if w, ok := r.won["gozkd.peer.secretMode"]; ok {
			r.warn(w.from, w.key, "%s has no effect: %s is not set", w.value, key)
		}
		return
	}
	var err error
	if c.PeerSecret, err = readSecret(c.PeerSecretFile); err != nil {
		r.problem(r.won[key].from, key, "is %s: %v", c.PeerSecretFile, err)
	}
}

// readSecret returns the content of a file without white space at its ends. The errors do not show
// the content.
func readSecret(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	const others = 0o007
	if perm := info.Mode().Perm(); perm&others != 0 && runtime.GOOS != "windows" {
		return nil, fmt.Errorf("its permissions are %04o, so every user of this machine can use it: run chmod o= %s (Kubernetes: defaultMode: 0440 with fsGroup; Docker: mode: 0400)", perm, path)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxSecretFile+1))
	if err != nil {
		return nil, err
	}
	secret := bytes.TrimSpace(b)
	switch {
	case len(b) > maxSecretFile:
		return nil, fmt.Errorf("it has more than %d bytes, which is no secret", maxSecretFile)
	case len(secret) < minSecret:
		return nil, fmt.Errorf("it holds a secret of %d bytes, the minimum is %d: make one with openssl rand -base64 32", len(secret), minSecret)
	}
	return secret, nil
}
