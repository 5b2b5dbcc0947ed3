package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/install"
)

// StorePassword is the password of all key stores.
const StorePassword = "storepass"

// Stores are files of a certificate authority, of a server on this machine and of a client, each
// key in the formats PEM, PKCS12 and JKS.
type Stores struct{ dir string }

// ClientSubject is the subject of the client's certificate, as Java prints it.
const ClientSubject = `CN=alice,OU=Eng,O=Example\, Inc.,C=DE`

// MakeStores makes the files in dir, with openssl and the JDK's keytool.
func MakeStores(ctx context.Context, dir string) Stores {
	s := Stores{dir}
	pass := "pass:" + StorePassword
	p := s.File
	newKey := []string{"-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"}
	steps := [][]string{
		append([]string{"openssl", "req", "-x509", "-days", "2", "-subj", "/CN=compat-ca", "-keyout", p("ca.key"), "-out", p("ca.pem")}, newKey...),
		{"keytool", "-importcert", "-noprompt", "-alias", "ca", "-file", p("ca.pem"), "-keystore", p("trust.p12"), "-storetype", "PKCS12", "-storepass", StorePassword},
		{"keytool", "-importcert", "-noprompt", "-alias", "ca", "-file", p("ca.pem"), "-keystore", p("trust.jks"), "-storetype", "JKS", "-storepass", StorePassword},
	}
	for who, subject := range map[string]string{"server": "/CN=localhost", "client": "/C=DE/O=Example, Inc./OU=Eng/CN=alice"} {
		must.Do(os.WriteFile(p(who+".ext"), []byte("subjectAltName=IP:127.0.0.1,DNS:localhost\n"), 0o600))
		steps = append(steps,
			append([]string{"openssl", "req", "-new", "-subj", subject, "-keyout", p(who + ".key"), "-out", p(who + ".csr")}, newKey...),
			[]string{"openssl", "x509", "-req", "-days", "2", "-in", p(who + ".csr"), "-CA", p("ca.pem"), "-CAkey", p("ca.key"), "-CAcreateserial",
				"-extfile", p(who + ".ext"), "-out", p(who + ".crt")},
			[]string{"openssl", "pkcs12", "-export", "-name", who, "-inkey", p(who + ".key"), "-in", p(who + ".crt"), "-certfile", p("ca.pem"),
				"-out", p(who + ".p12"), "-passout", pass},
			[]string{"keytool", "-importkeystore", "-noprompt", "-srckeystore", p(who + ".p12"), "-srcstoretype", "PKCS12", "-srcstorepass", StorePassword,
				"-destkeystore", p(who + ".jks"), "-deststoretype", "JKS", "-deststorepass", StorePassword},
		)
	}
	for _, step := range steps {
		install.Output(ctx, "", step[0], step[1:]...)
	}
	for _, who := range []string{"server", "client"} {
		both := append(must.Get(os.ReadFile(p(who+".key"))), must.Get(os.ReadFile(p(who+".crt")))...)
		must.Do(os.WriteFile(p(who+".pem"), both, 0o600))
	}
	return s
}

// File returns the path of a file: ca.pem; for server and client .key, .crt, .pem with both, .p12
// and .jks; trust.p12 and trust.jks with the authority.
func (s Stores) File(name string) string { return filepath.Join(s.dir, name) }

// Keys returns ZooKeeper's settings for the stores of a side, server or client, in a format. prefix
// is that of the keys: "ssl." or "zookeeper.ssl.", for example.
func (s Stores) Keys(prefix, who, format string) map[string]string {
	suffix := map[string]string{"PEM": "pem", "PKCS12": "p12", "JKS": "jks"}[format]
	trust := "trust." + suffix
	if format == "PEM" {
		trust = "ca.pem"
	}
	keys := map[string]string{
		prefix + "keyStore.location": s.File(who + "." + suffix), prefix + "keyStore.type": format,
		prefix + "trustStore.location": s.File(trust), prefix + "trustStore.type": format,
	}
	if format != "PEM" {
		keys[prefix+"keyStore.password"], keys[prefix+"trustStore.password"] = StorePassword, StorePassword
	}
	return keys
}

// Client returns the configuration of the client in Go.
func (s Stores) Client() *tls.Config {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(must.Get(os.ReadFile(s.File("ca.pem"))))
	pair := must.Get(tls.LoadX509KeyPair(s.File("client.crt"), s.File("client.key")))
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool, ServerName: "localhost"}
}

// JavaFlags returns the flags of a Java client that uses the client's stores in a format.
func (s Stores) JavaFlags(format string) []string {
	flags := []string{"-Dzookeeper.client.secure=true", "-Dzookeeper.clientCnxnSocket=org.apache.zookeeper.ClientCnxnSocketNetty"}
	for k, v := range s.Keys("zookeeper.ssl.", "client", format) {
		flags = append(flags, "-D"+k+"="+v)
	}
	return flags
}
