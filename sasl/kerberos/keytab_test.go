package kerberos

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	gokeytab "github.com/jcmturner/gokrb5/v8/keytab"
)

func TestServer_ReadsTheKeytabAgain(t *testing.T) {
	k := newKDC(t)
	var log bytes.Buffer
	s := k.server(func(c *ServerConfig) { c.Logger = hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Trace}) })
	try := func() error { _, err := exchange(k.client("alice@EX.TEST", false), s); return err }
	if err := try(); err != nil {
		t.Fatal(err)
	}
	old, err := os.ReadFile(k.file)
	if err != nil {
		t.Fatal(err)
	}
	secrets := [][]byte{k.keys[17].KeyValue, k.keys[18].KeyValue}
	k.export("another", 3)
	if err := try(); err != nil {
		t.Errorf("with the new keytab: %v", err)
	}
	// What cannot be used leaves the keys as they were, and one warning.
	current, err := os.ReadFile(k.file)
	if err != nil {
		t.Fatal(err)
	}
	for _, broken := range [][]byte{nil, {5}, current[:len(current)-30], []byte("text"), {5, 2}} {
		if err := os.WriteFile(k.file, broken, 0o600); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := try(); err != nil {
				t.Errorf("keytab %d bytes long: %v", len(broken), err)
			}
		}
	}
	if err := os.Remove(k.file); err != nil {
		t.Fatal(err)
	}
	if err := try(); err != nil {
		t.Errorf("without a keytab: %v", err)
	}
	if n := strings.Count(log.String(), "previous content"); n < 2 || n > 6 {
		t.Errorf("%d warnings: %s", n, log.String())
	}
	// An old one comes back: its key is not that of the tickets.
	if err := os.WriteFile(k.file, old, 0o600); err != nil {
		t.Fatal(err)
	}
	wantRefused(t, try(), "version 3 (of this type it has the versions [2])")
	k.kvno = 2
	wantRefused(t, try(), "not that of the KDC")
	noSecret(t, log.String(), append(secrets, k.keys[17].KeyValue, k.keys[18].KeyValue)...)
}

func TestNewServer_Refuses(t *testing.T) {
	k := newKDC(t)
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte{5, 2}, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ file, principal, why string }{
		{k.file, "zookeeper/host.ex.test", "not of the form"},
		{k.file, "zookeeper@EX.TEST", "not of the form"},
		{k.file, "a/b/c@EX.TEST", "malformed"},
		{k.file, "", "not of the form"},
		{k.file, "zookeeper/other.ex.test@EX.TEST", "has no key of"},
		{empty, "*", "not a keytab"},
		{k.file + "x", "*", "cannot be read"},
	} {
		if _, err := NewServer(ServerConfig{KeyTab: c.file, Principal: c.principal}); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s, %s: %v, want %q", c.file, c.principal, err, c.why)
		}
	}
}

func TestNewServer_WarnsOfAnOpenKeytab(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no such permissions")
	}
	k := newKDC(t)
	var log bytes.Buffer
	for _, mode := range []os.FileMode{0o640, 0o644} {
		if err := os.Chmod(k.file, mode); err != nil {
			t.Fatal(err)
		}
		log.Reset()
		k.server(func(c *ServerConfig) { c.Logger = hclog.New(&hclog.LoggerOptions{Output: &log}) })
		if strings.Contains(log.String(), "every user") != (mode == 0o644) {
			t.Errorf("mode %o: %s", mode, log.String())
		}
	}
}

// A version in a keytab may be the last 8 bits of the version. The version itself is better.
func TestKeytab_Find(t *testing.T) {
	const name, realm, etype = "zookeeper", testRealm, 18
	kt := keytab{gokeytab.New()}
	versions := []uint32{3, 300, 300 & 0xff, 2, 256}
	for i, version := range versions {
		if err := kt.AddEntry(name, realm, fmt.Sprint("password", i), time.Unix(1, 0), 0, etype); err != nil {
			t.Fatal(err)
		}
		kt.Entries[i].KVNO = version
	}
	for _, c := range []struct {
		version uint32
		at      int // -1: none
	}{{3, 0}, {300, 1}, {300 & 0xff, 2}, {2, 3}, {256, 4}, {0, 1}, {256 + 3, 0}, {512 + 2, 3}, {4, -1}, {512, -1}} {
		got, err := kt.find([]string{name}, realm, etype, c.version)
		if c.at < 0 {
			if err == nil || !strings.Contains(err.Error(), "has the versions [3 300 44 2 256]") {
				t.Errorf("version %d: %v", c.version, err)
			}
			continue
		}
		want, wantErr := newKey(kt.Entries[c.at].Key)
		if err != nil || wantErr != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("version %d: not the key of version %d: %v, %v", c.version, versions[c.at], err, wantErr)
		}
	}
	for _, other := range []struct {
		components []string
		realm      string
		etype      int32
	}{{[]string{name, name}, realm, etype}, {[]string{name}, "OTHER.TEST", etype}, {[]string{name}, realm, 17}} {
		if _, err := kt.find(other.components, other.realm, other.etype, 3); err == nil {
			t.Errorf("found %v", other)
		}
	}
}

// FuzzKeytab checks that no file makes a panic, that no error contains the file, and that a file
// has no key of what it does not hold.
func FuzzKeytab(f *testing.F) {
	k := newKDC(f)
	file, err := os.ReadFile(k.file)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(file)
	f.Add(file[:len(file)-1])
	f.Add([]byte{5, 2})
	f.Add([]byte{5, 1, 0, 0, 0, 4, 1, 2, 3, 4})
	deleted := append([]byte{5, 2, 0xff, 0xff, 0xff, 0xfc, 1, 2, 3, 4}, file[2:]...)
	if kt, err := parseKeytab(deleted); err != nil || len(kt.Entries) == 0 {
		f.Fatalf("after a deleted entry: %d entries, %v", len(kt.Entries), err)
	}
	f.Add(deleted)
	f.Fuzz(func(t *testing.T, b []byte) {
		kt, err := parseKeytab(b)
		if err != nil {
			if !errors.Is(err, errKeytab) {
				t.Fatal(err) // it may hold the file
			}
			return
		}
		components := []string{"zookeeper", "host.ex.test"}
		if _, err := kt.find(components, testRealm, 18, 0); err == nil && !kt.holds(components, testRealm) {
			t.Fatal("a key of a principal that is not there")
		}
	})
}
