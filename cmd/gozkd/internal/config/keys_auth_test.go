package config

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

const jaasText = `Server {
	org.apache.zookeeper.server.auth.DigestLoginModule required user_super="planted1" user_bob="planted2";
	com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab="${dir}/zk.keytab" principal="zookeeper/h@R";
};
Client { org.apache.zookeeper.server.auth.DigestLoginModule required username="bob" password="planted3"; };
Odd { com.example.Module required; };
`

// privateFile puts a file that only its owner may read into a new directory, and returns its path.
func privateFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func flags(properties ...string) map[string]string {
	return map[string]string{"SERVER_JVMFLAGS": "-D" + strings.Join(properties, " -D")}
}

func TestAuth_JAAS(t *testing.T) {
	path := privateFile(t, jaasText)
	inv := good(t, "dataDir=/d", flags("java.security.auth.login.config="+path, "dir=/etc"))
	a := inv.Config.Auth
	if len(inv.Warnings) > 0 || len(a.Users) != 2 || a.Kerberos.Options["keyTab"] != "/etc/zk.keytab" || inv.Config.ACLSchemes() != nil || inv.Config.RequiredSchemes() != nil {
		t.Errorf("%v %+v", inv.Warnings, a)
	}
	super := good(t, "dataDir=/d\nSASLAuthenticationProvider.superPassword=planted4", flags("java.security.auth.login.config="+path, "dir=/etc")).Config.Auth
	if super.Users["super"] == a.Users["super"] || super.Users["bob"] != a.Users["bob"] {
		t.Error("superPassword is not the password of super alone")
	}
	if shown := inv.Config.String(); strings.Contains(shown, "planted") {
		t.Error(shown)
	}
	for lines, want := range map[string]string{
		"sasl.serverconfig=Other":          "zoo.cfg:2: sasl.serverconfig: is Other, a section that " + path + " does not have",
		"sasl.serverconfig=Odd":            "SERVER_JVMFLAGS: java.security.auth.login.config: the section Odd of " + path + " has neither org.apache.zookeeper.server.auth.DigestLoginModule nor com.sun.security.auth.module.Krb5LoginModule: name one of these, because other login modules are Java classes",
		"gozkd.sasl.userFile=/nonexistent": "zoo.cfg:2: gozkd.sasl.userFile: is /nonexistent: open /nonexistent: no such file or directory",
	} {
		if lines != "" {
			wantLines(t, problems(t, "dataDir=/d\n"+lines, flags("java.security.auth.login.config="+path, "dir=/etc")), want)
		}
	}
	wantLines(t, problems(t, "dataDir=/d", flags("java.security.auth.login.config="+path)),
		"SERVER_JVMFLAGS: java.security.auth.login.config: JAAS file "+path+": line 3: a value names a property in ${} that is not set with -D")
	client := privateFile(t, "Client { org.apache.zookeeper.server.auth.DigestLoginModule required username=bob password=planted3; };")
	wantLines(t, good(t, "dataDir=/d", flags("java.security.auth.login.config="+client)).Warnings,
		"SERVER_JVMFLAGS: java.security.auth.login.config: "+client+" has no section Server: no client can authenticate itself by SASL")
}

func TestAuth_UserFile(t *testing.T) {
	hash := strings.Repeat("0a", 16)
	users := privateFile(t, "# users\nbob:zk-sasl-md5:"+hash+"\n\na:b:zk-sasl-md5:"+hash+"\n")
	a := good(t, "dataDir=/d\ngozkd.sasl.userFile="+users, nil).Config.Auth
	if len(a.Users) != 2 || a.Users["bob"] != a.Users["a:b"] {
		t.Error(a.Users)
	}
	for text, want := range map[string]string{
		"bob:planted":                 "line 1 is not user:zk-sasl-md5:HASH",
		"\nbob:other:" + hash:         "line 2 is not user:zk-sasl-md5:HASH",
		"bob:zk-sasl-md5:planted":     "32 hexadecimal digits",
		":zk-sasl-md5:" + hash:        "line 1 is not",
		strings.Repeat("#\n", 600000): "more than",
	} {
		got := problems(t, "dataDir=/d\ngozkd.sasl.userFile="+privateFile(t, text), nil)
		if len(got) != 1 || !strings.Contains(got[0], want) || strings.Contains(got[0], "planted") || strings.Contains(got[0], hash) {
			t.Errorf("%v, want %s", got, want)
		}
	}
}

func TestAuth_UserFileReadableByAll(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("permissions are others on Windows")
	}
	users := privateFile(t, "bob:zk-sasl-md5:"+strings.Repeat("0a", 16))
	if err := os.Chmod(users, 0o644); err != nil {
		t.Fatal(err)
	}
	wantLines(t, good(t, "dataDir=/d\ngozkd.sasl.userFile="+users, nil).Warnings,
		"zoo.cfg:2: gozkd.sasl.userFile: is "+users+": its permissions are 0644, so every user of this machine can use it: run chmod o= "+users)
}

func TestAuth_Enforcement(t *testing.T) {
	const p = "org.apache.zookeeper.server.auth."
	none := "NO CLIENT CAN AUTHENTICATE ITSELF by sasl: java.security.auth.login.config names no JAAS file with users of this server"
	for lines, want := range map[string]struct {
		schemes, acl string
		lines        []string // warnings, or problems if there are no schemes
	}{
		"enforce.auth.schemes=sasl":                                  {"", "", []string{"zoo.cfg:2: enforce.auth.schemes: sasl has no effect: enforce.auth.enabled is false"}},
		"enforce.auth.enabled=true\nenforce.auth.schemes=digest":     {"digest", "", nil},
		"enforce.auth.enabled=true\nenforce.auth.schemes=digest, ip": {"digest ip", "", []string{"zoo.cfg:3: enforce.auth.schemes: ip admits everybody: each client has an identity of that scheme"}},
		"sessionRequireClientSASLAuth=true":                          {"sasl", "", []string{"zoo.cfg:2: sessionRequireClientSASLAuth: " + none}},
		"authProvider.1=" + p + "SASLAuthenticationProvider":         {"", "sasl", nil},
		"authProvider.x=" + p + "X509AuthenticationProvider":         {"", "x509", nil},
		"authProvider.1=" + p + "DigestAuthenticationProvider":       {"", "", nil},
		"authProvider.1=com.example.Own":                             {"", "", []string{`zoo.cfg:2: authProvider.1: THE CLASS "com.example.Own" CANNOT BE LOADED: every client that authenticates itself by its scheme fails, and no ACL can name that scheme`}},
		"ensembleAuthName=prod":                                      {"", "", []string{"zoo.cfg:2: ensembleAuthName: prod has no effect without authProvider.1=" + p + "EnsembleAuthenticationProvider"}},
		"requireClientAuthScheme=sasl":                               {"", "", []string{"zoo.cfg:2: requireClientAuthScheme: sasl has no effect: no version of ZooKeeper knows it. sessionRequireClientSASLAuth=true demands SASL of clients"}},
		"enforce.auth.enabled=true\nenforce.auth.schemes=sasl,x509\nauthProvider.1=" + p + "SASLAuthenticationProvider\nauthProvider.2=" + p + "X509AuthenticationProvider": {"sasl x509", "x509 sasl", []string{"zoo.cfg:3: enforce.auth.schemes: " + none}},
	} {
		inv := good(t, "dataDir=/d\n"+lines, nil)
		if got := strings.Join(inv.Config.RequiredSchemes(), " "); got != want.schemes || strings.Join(inv.Config.ACLSchemes(), " ") != want.acl {
			t.Errorf("%s: %s; %v", lines, got, inv.Config.ACLSchemes())
		}
		wantLines(t, inv.Warnings, want.lines...)
	}
	for lines, want := range map[string]string{
		"enforce.auth.enabled=true":                                                                          "zoo.cfg:2: enforce.auth.enabled: is true, but enforce.auth.schemes names no scheme: set it to sasl, x509 or digest",
		"enforce.auth.enabled=true\nenforce.auth.schemes=,":                                                  "zoo.cfg:3: enforce.auth.schemes: is ,, but enforce.auth.schemes names no scheme: set it to sasl, x509 or digest",
		"enforce.auth.enabled=true\nenforce.auth.schemes=no":                                                 `zoo.cfg:3: enforce.auth.schemes: names "no"; allowed: sasl, x509, digest, ip`,
		"enforce.auth.enabled=true\nenforce.auth.schemes=sasl":                                               "zoo.cfg:3: enforce.auth.schemes: names sasl, which needs authProvider.1=" + p + "SASLAuthenticationProvider",
		"enforce.auth.enabled=true\nenforce.auth.schemes=x509":                                               "zoo.cfg:3: enforce.auth.schemes: names x509, which needs secureClientPort or client.portUnification",
		"enforce.auth.enabled=true\nenforce.auth.schemes=digest\nDigestAuthenticationProvider.enabled=false": `zoo.cfg:3: enforce.auth.schemes: names "digest"; allowed: sasl, x509, digest, ip`,
	} {
		wantLines(t, problems(t, "dataDir=/d\n"+lines, nil), want)
	}
}

// Keys that can have several values read back, and a reload notices them.
func TestAuth_SeveralValues(t *testing.T) {
	text := "dataDir=/d\nsuperUser=a,b\nsuperUser.x=c\nauthProvider.7=org.apache.zookeeper.server.auth.EnsembleAuthenticationProvider\nensembleAuthName=prod, test\n"
	c := good(t, text, nil).Config
	if !slices.Equal(c.Server.Auth.SASLSupers, []string{"a,b", "c"}) || !c.EnsembleScheme() || !slices.Equal(c.Server.Auth.EnsembleNames, []string{"prod", "test"}) {
		t.Errorf("%+v", c.Auth)
	}
	if again := good(t, c.String(), nil).Config; fmt.Sprint(again) != fmt.Sprint(c) {
		t.Errorf("read back %v", again)
	}
	reload, restart := c.Changes(good(t, "dataDir=/d\nensembleAuthName=prod", nil).Config)
	if !slices.Equal(reload, []string{"superUser.*", "authProvider.*", "ensembleAuthName"}) || restart != nil {
		t.Error(reload, restart)
	}
}

func TestContainer_Auth(t *testing.T) {
	env := inImage(t, map[string]string{"ZOO_ENABLE_AUTH": "yes", "ZOO_SERVER_USERS": "bob,eve", "ZOO_SERVER_PASSWORDS": "planted1 planted2"})
	inv := good(t, "", env)
	if a := inv.Config.Auth; len(a.Users) != 2 || !slices.Equal(inv.Config.ACLSchemes(), []string{"sasl"}) || len(inv.Warnings) > 0 {
		t.Errorf("%+v %v", a, inv.Warnings)
	}
	if a := good(t, "", inImage(t, map[string]string{"ZOO_ENABLE_AUTH": "no", "ZOO_SERVER_USERS": "bob"})).Config.Auth; len(a.Users) > 0 {
		t.Error(a.Users)
	}
}
