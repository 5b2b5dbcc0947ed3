package store

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/minio/minio-go/v7/pkg/credentials"
)

// openServer opens a place in the S3 server at the address GOZKD_S3, such as versitygw: one for the
// user "access" with the secret "secret/+" in the region eu-central-2, whose certificate is for
// 127.0.0.1 and example.com. A place in Amazon's storage is in that server, too: it must answer at
// the names that Amazon has for buckets of the region.
func openServer(t *testing.T, location string) *bucket {
	t.Helper()
	server := os.Getenv("GOZKD_S3")
	if server == "" {
		t.Skip("GOZKD_S3 names no S3 server: see docs/quality/how-we-test.md")
	}
	s, err := Open(strings.ReplaceAll(location, "SERVER", server), func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	b := s.(*bucket)
	b.credentials = credentials.NewStaticV4("access", "secret/+", "")
	if transport := b.client.Transport.(*http.Transport); !strings.Contains(location, "SERVER") {
		transport.TLSClientConfig = &tls.Config{ServerName: "example.com", MinVersion: tls.VersionTLS12}
		transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			if address != b.name+".s3.dualstack.eu-central-2.amazonaws.com:443" {
				return nil, errors.New("dialed " + address)
			}
			return (&net.Dialer{}).DialContext(ctx, network, server)
		}
	}
	t.Cleanup(b.client.CloseIdleConnections)
	return b
}

// makeBucket makes the bucket of a place.
func makeBucket(t *testing.T, b *bucket) {
	t.Helper()
	if _, err := b.send(t.Context(), http.MethodPut, "", nil, nil); err != nil {
		t.Fatal(err)
	}
}

// A listing of more objects than are on a page, from any name on. The region is found.
func TestServer_Lists(t *testing.T) {
	b, ctx := openServer(t, "s3://lists/a/prefix?endpoint=https://SERVER"), t.Context()
	makeBucket(t, b)
	var names []string
	for i := range 1005 {
		names = append(names, fmt.Sprintf("%03d/%d", i/10, i%10))
		if err := b.Put(ctx, names[i], make([]byte, i)); err != nil {
			t.Fatal(err)
		}
	}
	if region := b.region.Load(); region != "eu-central-2" {
		t.Errorf("the region is %v", region)
	}
	for _, c := range []struct {
		prefix, after string
		want          []string
	}{
		{"", "", names}, {"", names[3], names[4:]}, {"00", "", names[:100]}, {"001/", "001/4", names[15:20]}, {"001/", "001/45", names[15:20]}, {"x", "", nil},
	} {
		list, err := b.List(ctx, c.prefix, c.after)
		var got []string
		for _, o := range list {
			got = append(got, o.Name)
			if i := slices.Index(names, o.Name); o.Size != int64(i) || o.Modified.IsZero() {
				t.Errorf("%v", o)
			}
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q after %q: %d objects %v", c.prefix, c.after, len(got), err)
		}
	}
}

// Objects of any size and name come back as they were, also through a host of the bucket.
func TestServer_Keeps(t *testing.T) {
	for kind, location := range map[string]string{
		"path": "s3://path/p?endpoint=https://SERVER&region=eu-central-2", "host": "s3://host?region=eu-central-2",
	} {
		t.Run(kind, func(t *testing.T) {
			b, ctx := openServer(t, location), t.Context()
			makeBucket(t, b)
			for _, name := range []string{"a b", "a+b", "a%2Fb", "ü/€", "a=b&c?d#e", "~(x)!*'", "0x1:2", "<&>\"'", "日本語", "large", "empty"} {
				data := []byte(name)
				switch name {
				case "large":
					data = bytes.Repeat([]byte("0123456789abcdef"), 9<<16)
				case "empty":
					data = nil
				}
				for range 2 { // the second one replaces it
					if err := b.Put(ctx, name, data); err != nil {
						t.Errorf("%q: %v", name, err)
					}
				}
				if got, err := b.Get(ctx, name); err != nil || !bytes.Equal(got, data) {
					t.Errorf("%q: %d bytes, want %d: %v", name, len(got), len(data), err)
				}
				if list, err := b.List(ctx, name, ""); err != nil || len(list) != 1 || list[0].Name != name || list[0].Size != int64(len(data)) {
					t.Errorf("%q is listed as %v, %v", name, list, err)
				}
				for range 2 {
					if err := b.Delete(ctx, name); err != nil {
						t.Errorf("%q: %v", name, err)
					}
				}
				if _, err := b.Get(ctx, name); !errors.Is(err, ErrNotFound) {
					t.Errorf("%q: %v", name, err)
				}
			}
		})
	}
}

// Errors say what the server answered.
func TestServer_Refuses(t *testing.T) {
	b := openServer(t, "s3://refuses/p?endpoint=https://SERVER&region=eu-central-2")
	makeBucket(t, b)
	for _, c := range []struct{ key, secret, bucket, want string }{
		{"access", "wrong", "refuses", "SignatureDoesNotMatch: "},
		{"nobody", "secret/+", "refuses", "XAdminUserNotFound: "},
		{"access", "secret/+", "missing", "NoSuchBucket: "},
		{"", "", "refuses", "AccessDenied: "},
	} {
		b.name, b.credentials = c.bucket, credentials.NewStaticV4(c.key, c.secret, "")
		if c.key == "" {
			b.credentials = credentials.NewStatic("", "", "", credentials.SignatureAnonymous)
		}
		_, err := b.List(t.Context(), "", "")
		for _, err := range []error{err, b.Put(t.Context(), "a", []byte("x"))} {
			if err == nil || !strings.Contains(err.Error(), "archive: s3://"+c.bucket+"/p/: "+c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		}
	}
	synctest.Test(t, func(t *testing.T) { // its clock says 2000
		b := openServer(t, "s3://refuses/p?endpoint=https://SERVER&region=eu-central-2")
		if _, err := b.Get(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "RequestTimeTooSkewed: ") || !strings.Contains(err.Error(), "Set the clock") {
			t.Error(err)
		}
	})
}
