package testca

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// Files are the PEM files of a server's or a client's configuration.
type Files struct {
	Key  string // the key and its chain, as ssl.keyStore.location takes them
	Cert string // the chain alone
	Bare string // the key alone
	CA   string // the root
}

// Files writes the PEM files of c to a directory of the test.
func (c *Cert) Files(t testing.TB) Files {
	t.Helper()
	dir := t.TempDir()
	return Files{
		Key:  WriteFile(t, filepath.Join(dir, "both.pem"), c.KeyPEM(t), c.CertPEM()),
		Cert: WriteFile(t, filepath.Join(dir, "cert.pem"), c.CertPEM()),
		Bare: WriteFile(t, filepath.Join(dir, "key.pem"), c.KeyPEM(t)),
		CA:   WriteFile(t, filepath.Join(dir, "ca.pem"), c.root.CertPEM()),
	}
}

// WriteFile writes a file that only its owner may read, in one step, and returns path.
func WriteFile(t testing.TB, path string, parts ...[]byte) string {
	t.Helper()
	tmp := path + ".tmp"
	if err := os.WriteFile(tmp, bytes.Join(parts, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(tmp, path); err != nil {
		t.Fatal(err)
	}
	return path
}
