package kerberos

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

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
		{empty, "*", "has no key of"},
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

// FuzzKeytab compares our reader with gokrb5's, and checks that ours panics at nothing.
func FuzzKeytab(f *testing.F) {
	k := newKDC(f)
	file, err := os.ReadFile(k.file)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(file)
	f.Add([]byte{5, 2})
	f.Add(append([]byte{5, 2, 0xff, 0xff, 0xff, 0xfc, 1, 2, 3, 4}, file[2:]...)) // a deleted entry
	f.Fuzz(func(t *testing.T, b []byte) {
		kt, err := parseKeytab(b)
		if err != nil {
			return
		}
		theirs := gokeytab.New()
		if err := theirs.Unmarshal(b); err != nil || len(theirs.Entries) != len(kt) {
			return // they stop at the first size of 0 and at rests of less than 4 bytes, as we do not
		}
		for i, e := range kt {
			if !bytes.Equal(e.key.KeyValue, theirs.Entries[i].Key.KeyValue) || e.version != theirs.Entries[i].KVNO || e.realm != theirs.Entries[i].Principal.Realm {
				t.Fatalf("entry %d: %+v, of gokrb5 %s", i, e, theirs.Entries[i])
			}
		}
	})
}
