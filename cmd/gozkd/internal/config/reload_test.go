package config

import (
	"crypto/tls"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/server"
)

// applied names the fields of Config, besides Server, that the reloader of cmd/gozkd applies.
var applied = []string{
	"LogLevel",         // reloader.reload
	"Auth", "Kerberos", // mechanisms.apply, and ForServer
	"X509ID",                                        // ForServer
	"ClientTLS", "SSLQuorum", "PeerPortUnification", // portTLS.prepare
	"PeerTLS", "MetricsTLS", "MetricsNeedCert", "MetricsWantCert", "AdminNeedCert", // the same
	"AdminX509", // reloader.administrator
}

// A reload applies each key that can change at runtime: Server.Reload changes its field, or the
// reloader does. Otherwise the log would say that the key has changed, and nothing would happen.
func TestTable_ReloadsLikeTheServer(t *testing.T) {
	jaas := privateFile(t, `Server { org.apache.zookeeper.server.auth.DigestLoginModule required user_bob="secret"; };`)
	users := privateFile(t, "bob:zk-sasl-md5:"+strings.Repeat("0a", 16))
	load := func(settings ...string) (Config, error) {
		args := []string{"--memory"}
		for _, set := range settings {
			args = append(args, "-o", set)
		}
		_, c, err := Load(args, func(string) string { return "" }, nil)
		return c, err
	}
	values := []string{"true", "false", "7", "70000", "0.25", "*", "CN=a", "cn", "super:xQJm", "off", "want", "none", "JKS", "PEM",
		"TLSv1.2", "TLSv1.3", "RULE:[1:$1]", "ip", "sasl", jaas, users}
	beside := map[string][]string{ // keys without which a key cannot be set
		"admin.needClientAuth":   {"admin.forceHttps=true", "ssl.quorum.keyStore.location=k.pem", "ssl.quorum.trustStore.location=t.pem"},
		"client.portUnification": {"ssl.keyStore.location=k.pem", "ssl.trustStore.location=t.pem"},
		"gozkd.admin.x509":       {"admin.enableServer=true"},
		enforceEnabled:           {enforceSchemes + "=digest"},
	}
	for _, k := range keys {
		if !k.reload {
			continue
		}
		first, err := load(beside[k.name]...)
		if err != nil {
			t.Fatalf("%s: %v", k.name, err)
		}
		seen := false
		for _, v := range values {
			next, err := load(append(slices.Clone(beside[k.name]), k.name+"="+v)...)
			if err != nil {
				continue
			}
			if changed, _ := first.Changes(next); !slices.Contains(changed, k.name) {
				continue
			}
			from, to := first.ForServer(), next.ForServer()
			from.TLS = &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, nil }}
			to.TLS = from.TLS // as portTLS.prepare does
			s, err := server.New(from)
			if err != nil {
				t.Fatal(err)
			}
			if restart, err := s.Reload(to); err != nil || restart != nil {
				t.Errorf("%s=%s: the server wants a restart for %v, %v", k.name, v, restart, err)
			}
			for _, field := range changedFields(first, next) {
				if field != "Server" && !slices.Contains(applied, field) {
					t.Errorf("%s=%s: nothing applies Config.%s in a reload", k.name, v, field)
				}
			}
			seen = true
			break
		}
		if !seen {
			t.Errorf("no value changes %s: add one, or the keys that it needs", k.name)
		}
	}
}

// changedFields names the fields in which two configurations differ.
func changedFields(a, b Config) (names []string) {
	from, to := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range from.NumField() {
		if !reflect.DeepEqual(from.Field(i).Interface(), to.Field(i).Interface()) {
			names = append(names, from.Type().Field(i).Name)
		}
	}
	return names
}

// Another password in the same file is a change.
func TestChanges_Passwords(t *testing.T) {
	for key, files := range map[string][]string{
		jaasFile: {
			`Server { org.apache.zookeeper.server.auth.DigestLoginModule required user_bob="old"; };`,
			`Server { org.apache.zookeeper.server.auth.DigestLoginModule required user_bob="new"; };`,
		},
		saslUserFile: {"bob:zk-sasl-md5:" + strings.Repeat("0a", 16), "bob:zk-sasl-md5:" + strings.Repeat("0b", 16)},
	} {
		file := privateFile(t, files[0])
		load := func(text string) Config {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			_, c, err := Load([]string{"--memory", "-o", key + "=" + file}, func(string) string { return "" }, nil)
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		c, same, other := load(files[0]), load(files[0]), load(files[1])
		if changed, restart := c.Changes(same); changed != nil || restart != nil {
			t.Errorf("%s, nothing changed: %v, restart for %v", key, changed, restart)
		}
		if changed, restart := c.Changes(other); !slices.Equal(changed, []string{key}) || restart != nil {
			t.Errorf("%s, another password: %v, restart for %v", key, changed, restart)
		}
	}
}
