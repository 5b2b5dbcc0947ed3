package tlsconf

import (
	"bytes"
	"crypto/ecdsa"
	"encoding/asn1"
	"encoding/pem"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/internal/testca"
)

// password is that of all files in testdata.
const password = "secret1"

func golden(name string) string { return filepath.Join("testdata", name) }

func readGolden(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(golden(name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// goldenKey returns the key that is in all the key stores.
func goldenKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	cert, err := parsePEM(append(readGolden(t, "cert.pem"), readGolden(t, "pkcs8.pem")...), "")
	if err != nil {
		t.Fatal(err)
	}
	return cert.PrivateKey.(*ecdsa.PrivateKey)
}

func TestKeyStore_EveryFormat(t *testing.T) {
	want := goldenKey(t)
	for _, c := range []struct {
		name, key string
		chain     int
	}{
		{"keytool.jks", "", 2}, {"keytool.p12", "", 2}, {"keytool-legacy.p12", "", 2}, {"pkcs12-called.jks", "", 2},
		{"openssl.p12", "", 2}, {"openssl-legacy.p12", "", 2}, {"two.jks", "", 1},
		{"cert.pem", "pkcs8.pem", 1}, {"cert.pem", "sec1.pem", 1}, {"cert.pem", "encrypted.pem", 1}, {"cert.pem", "encrypted-sha1.pem", 1},
	} {
		o := Options{Prefix: "ssl.", ClientAuth: None, KeyStore: Store{Location: golden(c.name), Password: password}}
		if c.key != "" {
			o.KeyStore.Key = golden(c.key)
		}
		s, err := Load(o, hclog.NewNullLogger())
		if err != nil {
			t.Errorf("%s %s: %v", c.name, c.key, err)
			continue
		}
		cert := s.current.Load().cert
		switch {
		case c.name == "two.jks":
			if cert.Leaf.Subject.CommonName != "another" {
				t.Errorf("of two keys that of %s is used", cert.Leaf.Subject)
			}
		case !want.Equal(cert.PrivateKey) || cert.Leaf.Subject.String() != "CN=zk,O=Golden" || len(cert.Certificate) != c.chain:
			t.Errorf("%s %s: another key, the subject %s, or a chain of %d", c.name, c.key, cert.Leaf.Subject, len(cert.Certificate))
		}
	}
}

func TestKeyStore_PEMInAnyOrder(t *testing.T) {
	key, cert, ca := readGolden(t, "pkcs8.pem"), readGolden(t, "cert.pem"), readGolden(t, "ca.pem")
	for _, parts := range [][][]byte{{key, cert, ca}, {ca, cert, key}, {ca, key, cert}, {cert, []byte("# a comment\n"), ca, key}} {
		c, err := parsePEM(bytes.Join(parts, nil), "")
		if err != nil {
			t.Fatal(err)
		}
		if c.Leaf.Subject.CommonName != "zk" || len(c.Certificate) != 2 {
			t.Errorf("leaf %s, chain of %d", c.Leaf.Subject, len(c.Certificate))
		}
	}
}

func TestTrustStore_EveryFormat(t *testing.T) {
	for _, name := range []string{"trust.jks", "trust.p12", "ca.pem"} {
		s := Store{Location: golden(name), Password: password}
		certs, err := s.loadTrust(&input{data: map[string][]byte{golden(name): readGolden(t, name)}}, "ssl.trustStore.")
		if err != nil || len(certs) != 1 || certs[0].Subject.CommonName != "root" {
			t.Errorf("%s: %v, %v", name, certs, err)
		}
	}
}

// TestStores_Refused checks that errors name the key, the file and the remedy, and no secret.
func TestStores_Refused(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing.pem")
	for _, c := range []struct {
		name, key, password string
		trust               bool
		want                string
	}{
		{"keytool.jks", "", "planted-secret", false, "check the keys password and passwordPath"},
		{"keytool.p12", "", "planted-secret", false, "check the keys password and passwordPath"},
		{"openssl.p12", "", "planted-secret", false, "check the keys password and passwordPath"},
		{"cert.pem", "encrypted.pem", "planted-secret", false, "check the keys password and passwordPath"},
		{"cert.pem", "encrypted-3des.pem", password, false, "openssl pkcs8 -topk8"},
		{"cert.pem", "encrypted-old.pem", password, false, "openssl pkcs8 -topk8"},
		{"ca.pem", "pkcs8.pem", password, false, "none of its 1 certificates belongs"},
		{"cert.pem", "", password, false, "holds no private key"},
		{"trust.jks", "", password, false, "holds no private key"},
		{"jceks.jks", "", password, false, "JCEKS"},
		{"make.sh", "", password, false, "neither JKS nor PKCS12 nor PEM"},
		{"a.bcfks", "", password, false, "BCFKS is not supported"},
		{"openssl-trust.p12", "", password, true, "keytool -importcert -trustcacerts"},
		{"keytool.p12", "", password, true, "keytool -importcert -trustcacerts"},
		{"keytool.jks", "", password, true, "no certificate of an authority"},
		{"sec1.pem", "", password, true, "no certificate of an authority"},
		{missing, "", password, true, "no such file"},
	} {
		store := Store{Location: golden(c.name), Password: c.password}
		if c.name == missing {
			store.Location = missing
		}
		if c.key != "" {
			store.Key = golden(c.key)
		}
		o := Options{Prefix: "ssl.quorum.", ClientAuth: None, Role: Client, KeyStore: store}
		key := "ssl.quorum.keyStore.location: "
		if c.trust {
			o.KeyStore, o.TrustStore, key = Store{}, store, "ssl.quorum.trustStore.location: "
		}
		_, err := Load(o, hclog.NewNullLogger())
		if err == nil {
			t.Errorf("%s %s: accepted", c.name, c.key)
			continue
		}
		for _, want := range []string{key, store.Location, c.want} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s %s: %q does not contain %q", c.name, c.key, err, want)
			}
		}
		if strings.Contains(err.Error(), c.password) {
			t.Errorf("%q shows the password", err)
		}
	}
}

func TestPasswordFile_WinsAndLosesOneLineEnd(t *testing.T) {
	for text, want := range map[string]string{"secret1": "secret1", "secret1\n": "secret1", "secret1\r\n": "secret1", "secret1\n\n": "secret1\n", " a ": " a "} {
		s := Store{Password: "other", PasswordFile: "f"}
		if got := s.password(&input{data: map[string][]byte{"f": []byte(text)}}); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestPasswordFile_ReadableByAll(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "password")
	if err := os.WriteFile(file, []byte(password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, warned := range map[os.FileMode]bool{0o600: false, 0o640: false, 0o644: true} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		o := Options{Prefix: "ssl.", ClientAuth: None, KeyStore: Store{Location: golden("keytool.jks"), Password: "other", PasswordFile: file}}
		if _, err := Load(o, hclog.New(&hclog.LoggerOptions{Output: &log})); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(log.String(), "chmod"); got != warned {
			t.Errorf("%o: warned: %v: %s", mode, got, &log)
		}
		if strings.Contains(log.String(), password) {
			t.Errorf("the log shows the password: %s", &log)
		}
	}
}

// TestPrivateKey_ReadableByAll checks that a key that needs no password gives a warning, wherever
// it is.
func TestPrivateKey_ReadableByAll(t *testing.T) {
	ca := testca.New(t, "root")
	f := ca.Issue(t, testca.Spec{CN: "server"}).Files(t)
	for _, c := range []struct {
		store  Store
		warned bool
	}{
		{Store{Location: f.Key}, true},
		{Store{Location: f.Cert, Key: f.Bare}, true},
		{Store{Location: golden("keytool.jks"), Password: password}, false},
	} {
		for _, path := range []string{c.store.Location, c.store.Key} {
			if path == "" || !filepath.IsAbs(path) {
				continue
			}
			if err := os.Chmod(path, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		var log bytes.Buffer
		o := Options{Prefix: "ssl.", ClientAuth: None, KeyStore: c.store}
		if _, err := Load(o, hclog.New(&hclog.LoggerOptions{Output: &log})); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(log.String(), "chmod"); got != c.warned {
			t.Errorf("%+v: warned: %v: %s", c.store, got, &log)
		}
	}
}

// TestKeyStore_Documented uses a certificate as ZooKeeper's documentation makes them: signed by
// itself, without any subject alternative name.
func TestKeyStore_Documented(t *testing.T) {
	server := Defaults("ssl.", Server)
	server.KeyStore = Store{Location: golden("documented.jks"), Password: password}
	server.TrustStore = Store{Location: golden("documented.pem")}
	client := server
	client.Role = Client
	s, c := load(t, server), load(t, client)
	if o := shake(s.Server(), c.Client("zk.example")); o.serverErr != nil || o.clientErr != nil {
		t.Errorf("%v, %v", o.serverErr, o.clientErr)
	}
	if o := shake(s.Server(), c.Client("other.example")); o.clientErr == nil {
		t.Error("a foreign name was accepted")
	}
}

func TestPKCS12_TooManyIterations(t *testing.T) {
	data := readGolden(t, "openssl.p12")
	count := []byte{2, 2, 8, 0} // INTEGER 2048
	if n := bytes.Count(data, count); n == 0 {
		t.Fatal("the file has no count of 2048 iterations")
	}
	large := bytes.ReplaceAll(data, count, []byte{2, 2, 0x7f, 0xff})
	if total, err := iterations(large, 0); err != nil || total < 3*0x7fff {
		t.Errorf("%d, %v", total, err)
	}
	// An iteration count of 4 bytes in the MAC changes the lengths around it, so it is made by
	// hand.
	der := []byte{0x30, 9, 4, 1, 0, 2, 4, 0x7f, 0xff, 0xff, 0xff}
	if _, err := pkcs12Key(der, ""); err == nil || !strings.Contains(err.Error(), "iterations") {
		t.Errorf("%v", err)
	}
	if _, err := pkcs12Key(append([]byte{0x30, 0x80}, der...), ""); err == nil {
		t.Error("an indefinite length was accepted")
	}
}

func TestPKCS8_TooManyIterations(t *testing.T) {
	block, _ := pem.Decode(readGolden(t, "encrypted.pem"))
	count := []byte{2, 2, 8, 0} // INTEGER 2048
	if bytes.Count(block.Bytes, count) != 1 {
		t.Fatal("the file has no count of 2048 iterations")
	}
	var sealed encryptedKey
	if _, err := asn1.Unmarshal(block.Bytes, &sealed); err != nil {
		t.Fatal(err)
	}
	derive, err := asn1.Marshal(kdf{Salt: make([]byte, 8), Iterations: maxIterations + 1})
	if err != nil {
		t.Fatal(err)
	}
	var scheme pbes2
	if _, err := asn1.Unmarshal(sealed.Algorithm.Parameters.FullBytes, &scheme); err != nil {
		t.Fatal(err)
	}
	scheme.KDF.Parameters.FullBytes = derive
	if sealed.Algorithm.Parameters.FullBytes, err = asn1.Marshal(scheme); err != nil {
		t.Fatal(err)
	}
	der, err := asn1.Marshal(sealed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := decryptPKCS8(der, "x"); err == nil || !strings.Contains(err.Error(), "iterations") {
		t.Errorf("%v", err)
	}
}

// fuzzStore does what Load does with a file of a stranger.
func fuzzStore(t *testing.T, data []byte) {
	s := Store{Location: "f", Password: password}
	in := &input{data: map[string][]byte{"f": data}}
	cert, err := s.loadKey(in, "")
	switch {
	case err == nil && (cert.Leaf == nil || cert.PrivateKey == nil || len(cert.Certificate) == 0):
		t.Error("half a certificate")
	case err != nil && strings.Contains(err.Error(), password) && !bytes.Contains(data, []byte(password)):
		t.Errorf("%q shows the password", err)
	}
	certs, err := s.loadTrust(in, "")
	if err == nil && (len(certs) == 0 || slices.Contains(certs, nil)) {
		t.Error("no certificate")
	}
}

func FuzzStore(f *testing.F) {
	files, err := filepath.Glob(golden("*.*"))
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) { fuzzStore(t, data) })
}
