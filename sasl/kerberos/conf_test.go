package kerberos

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jcmturner/gokrb5/v8/config"

	"github.com/gozkd/gozkd/sasl"
)

func TestLoadConf_Includes(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	write("conf.d/realm", "[libdefaults]\n default_realm = EX.TEST\n")
	write("conf.d/skew.conf", "[libdefaults]\n clockskew = 60\n default_tgs_enctypes = aes256-cts-hmac-sha1-96 rc4-hmac\n")
	write("conf.d/ignored.rpmsave", "[libdefaults]\n default_realm = WRONG.TEST\n")
	one := write("one", "[realms]\n EX.TEST = {\n  kdc = kdc.ex.test\n }")
	conf, err := LoadConf(write("krb5.conf", "includedir "+filepath.Join(dir, "conf.d")+"\r\ninclude "+one+"\nincludedir /nowhere\n[appdefaults]\n x = y\n"))
	if err != nil {
		t.Fatal(err)
	}
	if conf.DefaultRealm() != "EX.TEST" || conf.ClockSkew() != time.Minute || !slices.Equal(conf.conf.LibDefaults.DefaultTGSEnctypeIDs, []int32{18}) {
		t.Errorf("realm %q, clock skew %s, %v", conf.DefaultRealm(), conf.ClockSkew(), conf.conf.LibDefaults.DefaultTGSEnctypeIDs)
	}
	if n, kdcs, err := conf.conf.GetKDCs("EX.TEST", true); err != nil || n != 1 || kdcs[1] != "kdc.ex.test:88" {
		t.Errorf("KDCs: %v, %v", kdcs, err)
	}
	for text, why := range map[string]string{
		"include " + filepath.Join(dir, "itself"):         "include each other",
		"include /nowhere/krb5.conf":                      "no such file",
		"[libdefaults]\n default_tkt_enctypes = rc4-hmac": "too weak",
		"[libdefaults]\n clockskew = soon":                "libdefaults",
	} {
		if _, err := LoadConf(write("itself", text)); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v, want %q", text, err, why)
		}
	}
	if _, err := LoadConf(filepath.Join(dir, "none")); err == nil {
		t.Error("a file that was named and does not exist")
	}
}

// TestLoadConf_TakesWhatOthersWrote has files that are right and that gokrb5 panics at or refuses.
func TestLoadConf_TakesWhatOthersWrote(t *testing.T) {
	for _, text := range []string{
		"[libdefaults]\n default_realm = EX.TEST\n[realms]\n EX.TEST = {\n  kdc = a:1\n  auth_to_local_names = {\n   guest = nobody\n  }\n  kdc = b\n }\n",
		"[libdefaults]\n default_realm = EX.TEST\n[realms]\n EX.TEST = { kdc = a:1\n kdc = b }\n",
		"# A comment {\n [libdefaults] # another\n default_realm = EX.TEST\n flag\n pkinit_anchors = FILE:/x\n[realms]\n OTHER = {\n v4_instance_convert = {\n a = b\n}\n}\nEX.TEST = {\n kdc = a:1\n kdc = b\n }\n}\n[capaths]\n A = {\n B = .\n}\n",
	} {
		conf, err := LoadConf(writeConf(t, text))
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if n, kdcs, err := conf.conf.GetKDCs("EX.TEST", true); err != nil || n != 2 || conf.DefaultRealm() != "EX.TEST" {
			t.Errorf("%q: KDCs %v, %v, default realm %q", text, kdcs, err, conf.DefaultRealm())
		}
	}
}

// FuzzConf checks that no krb5.conf makes a panic.
func FuzzConf(f *testing.F) {
	f.Add("[libdefaults]\n default_realm = A\n clockskew = 1h\n permitted_enctypes = aes256-cts\n[realms]\n A = {\n kdc = a*\n x = {\n }\n }\n[domain_realm]\n .a = A\n")
	f.Fuzz(func(_ *testing.T, text string) { _, _ = config.NewFromString(reduced(text)) })
}

func TestServerLogin_Options(t *testing.T) {
	conf, err := LoadConf(writeConf(t, "[libdefaults]\n default_realm = EX.TEST\n clockskew = 30\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		options map[string]string
		want    ServerConfig
		why     string
	}{
		{map[string]string{"useKeyTab": "true", "keyTab": "/k", "principal": "zookeeper/h"}, ServerConfig{KeyTab: "/k", Principal: "zookeeper/h@EX.TEST"}, ""},
		{map[string]string{"useKeyTab": "true", "keyTab": "FILE:/k", "principal": "zookeeper/h@R", "debug": "true"}, ServerConfig{KeyTab: "/k", Principal: "zookeeper/h@R"}, ""},
		{map[string]string{"useKeyTab": "true", "keyTab": "/k", "principal": "*"}, ServerConfig{KeyTab: "/k", Principal: "*"}, ""},
		{map[string]string{"keyTab": "/k", "principal": "zookeeper/h"}, ServerConfig{}, "useKeyTab=true"},
		{map[string]string{"useKeyTab": "true", "principal": "zookeeper/h"}, ServerConfig{}, "keyTab"},
		{map[string]string{"useKeyTab": "true", "keyTab": "/k"}, ServerConfig{}, "principal"},
	} {
		got, err := ServerLogin(sasl.LoginModule{Options: c.options}, conf)
		if c.why != "" {
			if err == nil || !strings.Contains(err.Error(), c.why) {
				t.Errorf("%v: %v, want %q", c.options, err, c.why)
			}
			continue
		}
		if err != nil || got.KeyTab != c.want.KeyTab || got.Principal != c.want.Principal || got.ClockSkew != 30*time.Second {
			t.Errorf("%v: %+v, %v", c.options, got, err)
		}
	}
}

func TestClientLogin_Options(t *testing.T) {
	conf, err := LoadConf(writeConf(t, ""))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		options       map[string]string
		keytab, cache string
	}{
		{map[string]string{"useKeyTab": "true", "keyTab": "/k", "principal": "alice"}, "/k", ""},
		{map[string]string{"useTicketCache": "true"}, "", "/tmp/cc"},
		{map[string]string{"useTicketCache": "true", "ticketCache": "/c"}, "", "/c"},
		{map[string]string{"useTicketCache": "true", "useKeyTab": "true", "keyTab": "/k"}, "/k", ""},
		{map[string]string{"principal": "alice"}, "", ""},
	} {
		got, err := ClientLogin(sasl.LoginModule{Options: c.options}, conf, "/tmp/cc")
		if (err == nil) != (c.keytab != "" || c.cache != "") || got.KeyTab != c.keytab || got.TicketCache != c.cache {
			t.Errorf("%v: %+v, %v", c.options, got, err)
		}
	}
}

// TestNewClient_Refuses also is the reading of a keytab by gokrb5, whose errors contain the file.
func TestNewClient_Refuses(t *testing.T) {
	k := newKDC(t)
	conf, err := LoadConf(writeConf(t, "[libdefaults]\n default_realm = EX.TEST\n"))
	if err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(t.TempDir(), "cut")
	file, err := os.ReadFile(k.file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cut, file[:len(file)-40], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewClient(ClientConfig{Conf: conf, KeyTab: k.file, Principal: testService}); err != nil {
		t.Errorf("the principal is in the keytab: %v", err)
	}
	for _, c := range []struct {
		config ClientConfig
		why    string
	}{
		{ClientConfig{KeyTab: k.file, Principal: "alice"}, "has no key of alice@EX.TEST"},
		{ClientConfig{KeyTab: k.file}, "needs a name"},
		{ClientConfig{KeyTab: cut, Principal: testService}, "not a keytab"},
		{ClientConfig{KeyTab: "/nowhere/k", Principal: testService}, "cannot be read"},
		{ClientConfig{TicketCache: "FILE:/nowhere/cc"}, "run kinit"},
		{ClientConfig{TicketCache: "KCM:0"}, "not a file"},
	} {
		c.config.Conf = conf
		_, err := NewClient(c.config)
		if err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%+v: %v, want %q", c.config, err, c.why)
			continue
		}
		noSecret(t, err.Error(), k.keys[18].KeyValue)
	}
}

func writeConf(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "krb5.conf")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
