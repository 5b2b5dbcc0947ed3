package config

import (
	"bytes"
	"fmt"

	"github.com/gozkd/gozkd/internal/secretfile"
)

const (
	// minSecret is the least that the server accepts, in bytes.
	minSecret = 16
	// maxSecretFile bounds the file with the secret, and that with a token, in bytes.
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
	if c.Server.PeerSecret, err = readSecret(c.PeerSecretFile); err != nil {
		r.problem(r.won[key].from, key, "is %s: %v", c.PeerSecretFile, err)
	}
}

// adminToken warns of a file with a token that every user of this machine can read. The server
// reads the file at each request, so it may be missing now.
func (r *resolver) adminToken(c *Config) {
	const key = "gozkd.admin.tokenFile"
	if c.AdminTokenFile == "" || !c.AdminEnabled {
		return
	}
	if _, shared, err := secretfile.Read(c.AdminTokenFile, maxSecretFile); err == nil && shared != "" {
		r.warn(r.won[key].from, key, "is %s: %s", c.AdminTokenFile, shared)
	}
}

// readSecret returns the content of a file without white space at its ends. The errors do not show
// the content.
func readSecret(path string) ([]byte, error) {
	b, shared, err := secretfile.Read(path, maxSecretFile)
	if err != nil {
		return nil, err
	}
	if shared != "" {
		return nil, fmt.Errorf("%s (Kubernetes: defaultMode: 0440 with fsGroup; Docker: mode: 0400)", shared)
	}
	secret := bytes.TrimSpace(b)
	if len(secret) < minSecret {
		return nil, fmt.Errorf("it holds a secret of %d bytes, the minimum is %d: make one with openssl rand -base64 32", len(secret), minSecret)
	}
	return secret, nil
}
