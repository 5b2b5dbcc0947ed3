// Package s3 tests the archive in object storage against a real S3 server, which verifies the
// signatures of requests: versitygw, with its files in a temporary directory.
package s3

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

func TestMain(m *testing.M) { os.Exit(m.Run()) } // make s3 bounds the time

func TestServer(t *testing.T) {
	tree, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	address, cert := startServer(t)
	env := append(os.Environ(), "SSL_CERT_FILE="+cert, "SSL_CERT_DIR="+t.TempDir(), "GOWORK=", "GOZKD_S3="+address,
		"AWS_ACCESS_KEY_ID=access", "AWS_SECRET_ACCESS_KEY=secret/+", "AWS_REGION=", "AWS_DEFAULT_REGION=")
	run := func(t *testing.T, name string, args ...string) (string, error) {
		c := exec.CommandContext(t.Context(), name, args...)
		c.Dir, c.Env = tree, env
		out, err := c.CombinedOutput()
		return string(out), err
	}
	// The tests of the package store that need a server, not one of which may be left out.
	t.Run("store", func(t *testing.T) {
		out, err := run(t, "go", "test", "-count=1", "-v", "-run", "^TestServer_", "./cmd/gozkd/internal/archive/store")
		t.Log(out)
		if err != nil || strings.Count(out, "\n--- PASS: TestServer_") != 3 {
			t.Error(err)
		}
	})
	// A server archives its log there, with credentials from the environment; the tools read it.
	t.Run("programs", func(t *testing.T) {
		gozkd, dir, port := filepath.Join(tree, "bin", "gozkd"), t.TempDir(), free(t)
		_, number, _ := net.SplitHostPort(port)
		place := "s3://lists/zk?endpoint=https://" + address // a bucket that the tests above have made
		server := exec.CommandContext(t.Context(), gozkd, "serve", "--data-dir", filepath.Join(dir, "data"), "-o", "clientPort="+number,
			"-o", "clientPortAddress=127.0.0.1", "-o", "admin.enableServer=false", "-o", "gozkd.archive.url="+place)
		var log bytes.Buffer
		server.Env, server.Stdout, server.Stderr = env, &log, &log
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		await := func(args ...string) {
			out, err := run(t, gozkd, args...)
			for begun := time.Now(); err != nil && time.Since(begun) < time.Minute; time.Sleep(100 * time.Millisecond) {
				out, err = run(t, gozkd, args...)
			}
			if err != nil {
				t.Errorf("%v: %v\n%s", args, err, out)
			}
		}
		await("verify", place) // the archive has begun
		await("cli", "-server", port, "create", "/a", "value")
		if err := errors.Join(server.Process.Signal(syscall.SIGTERM), server.Wait()); err != nil { // it archives the rest
			t.Fatalf("%v\n%s", err, &log)
		}
		for _, args := range [][]string{{"verify", place}, {"restore", place, "--into", filepath.Join(dir, "restored")}} {
			if out, err := run(t, gozkd, args...); err != nil {
				t.Errorf("%v: %v\n%s\n%s", args, err, out, &log)
			}
		}
		out, err := run(t, gozkd, "history", "/a", place)
		if err != nil || !strings.Contains(out, "create") {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// startServer returns the address of a server, and the file of its certificate.
func startServer(t *testing.T) (address, certFile string) {
	t.Helper()
	dir := t.TempDir()
	web := httptest.NewTLSServer(nil) // for its certificate, and for a free port
	address = web.Listener.Addr().String()
	key, err := x509.MarshalPKCS8PrivateKey(web.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"cert.pem": {Type: "CERTIFICATE", Bytes: web.Certificate().Raw}, "key.pem": {Type: "PRIVATE KEY", Bytes: key},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	web.Close()
	certFile = filepath.Join(dir, "cert.pem")
	attributes := t.TempDir()
	side, err := meta.NewSideCar(attributes)
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(".") // New changes the directory
	backend, err := posix.New(t.TempDir(), side, posix.PosixOpts{SideCarDir: attributes})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- embedgw.RunVersityGW(ctx, backend, &embedgw.Config{
			RootUserAccess: "access", RootUserSecret: "secret/+", Region: "eu-central-2",
			VirtualDomain: "s3.dualstack.eu-central-2.amazonaws.com", CertFile: certFile, KeyFile: filepath.Join(dir, "key.pem"),
			Ports: []string{address}, MaxConnections: 1000, MaxRequests: 1000, MultipartMaxParts: 1, Quiet: true, KeepAlive: true,
		})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Log(err)
		}
		backend.Shutdown()
	})
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
			return address, certFile
		}
		if time.Since(begun) > time.Minute {
			t.Fatal(err)
		}
	}
}
