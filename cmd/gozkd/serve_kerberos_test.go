package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
	"github.com/gozkd/gozkd/sasl"
)

// kerberosKeytab has zookeeper/h@EX.TEST with a key of 16 zeros.
const kerberosKeytab = "\x05\x02\x00\x00\x00\x3a\x00\x02\x00\x07EX.TEST\x00\x09zookeeper\x00\x01h\x00\x00\x00\x01\x00\x00\x00\x00\x01\x00\x11\x00\x10" +
	"\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"

// TestNewKerberos_Errors checks that an error names the key that is wrong.
func TestNewKerberos_Errors(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	conf, empty, keytab := file("krb5.conf", "[libdefaults]\n default_realm = EX.TEST\n"), file("empty.conf", ""), file("keytab", kerberosKeytab)
	module := func(principal string) sasl.LoginModule {
		return sasl.LoginModule{Options: map[string]string{"useKeyTab": "true", "keyTab": keytab, "principal": principal}}
	}
	good := config.Kerberos{Conf: conf, AuthToLocal: "DEFAULT"}
	log := hclog.NewNullLogger()
	first, err := newKerberos(good, module("zookeeper/h"), nil, log)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newKerberos(good, module("zookeeper/h"), first, log); err != nil {
		t.Errorf("again: %v", err)
	}
	for _, c := range []struct {
		config    config.Kerberos
		principal string
		want      string
	}{
		{config.Kerberos{Conf: dir + "/none", AuthToLocal: "DEFAULT"}, "zookeeper/h", "java.security.krb5.conf: "},
		{config.Kerberos{Conf: conf, AuthToLocal: "RULE:[1:$1]s/(?=a)/b/"}, "zookeeper/h", "security.auth_to_local: "},
		{config.Kerberos{Conf: empty, AuthToLocal: "DEFAULT", RequireConf: true}, "zookeeper/h@EX.TEST", "requireKerberosConfig: "},
		{config.Kerberos{Conf: empty, AuthToLocal: "DEFAULT"}, "zookeeper/h", "no default_realm"},
		{good, "zookeeper/other", "has no key of zookeeper/other@EX.TEST"},
		{good, "", "principal="},
	} {
		if _, err := newKerberos(c.config, module(c.principal), nil, log); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v, %q: %v, want %q", c.config, c.principal, err, c.want)
		}
	}
}
