package sasl_test

import (
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/sasl"
)

const sample = `// users
Server {
	org.apache.zookeeper.server.auth.DigestLoginModule required
	user_super="adminsecret"
	user_bob="bob\"s\tsecret"  /* a
	comment */ user_eve=evesecret;
	com.sun.security.auth.module.Krb5LoginModule OPTIONAL useKeyTab=true keyTab="${dir}/zk.keytab"
	principal='zookeeper/host@EX.TEST' storeKey=true;
};
Client { org.apache.zookeeper.server.auth.DigestLoginModule required username="bob" password="x{};=y"; };
Kafka { org.apache.kafka.common.security.plain.PlainLoginModule required username="admin" password="a" user_kafka="k"; };
"Empty" { };
`

func property(name string) (string, bool) { return "/etc", name == "dir" }

func TestParseJAAS(t *testing.T) {
	got, err := sasl.ParseJAAS(sample, property)
	if err != nil {
		t.Fatal(err)
	}
	want := sasl.JAAS{
		"Server": {
			{Class: sasl.DigestLoginModule, Options: map[string]string{"user_super": "adminsecret", "user_bob": "bob\"s\tsecret", "user_eve": "evesecret"}},
			{Class: sasl.KerberosLoginModule, Options: map[string]string{"useKeyTab": "true", "keyTab": "/etc/zk.keytab", "principal": "zookeeper/host@EX.TEST", "storeKey": "true"}},
		},
		"Client": {{Class: sasl.DigestLoginModule, Options: map[string]string{"username": "bob", "password": "x{};=y"}}},
		"Kafka":  {{Class: sasl.DigestLoginModule, Options: map[string]string{"username": "admin", "password": "a", "user_kafka": "k"}}},
		"Empty":  nil,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
	if m := got.Module("Server", sasl.KerberosLoginModule); m == nil || m.Options["storeKey"] != "true" {
		t.Error(m)
	}
	if m := got.Module("Client", sasl.KerberosLoginModule); m != nil {
		t.Error(m)
	}
	for user, password := range map[string]string{"super": "other", "bob": "bob\"s\tsecret", "eve": "evesecret"} {
		if id, err := exchange(sasl.NewDigest(got.DigestUsers("Server", "other")), sasl.NewDigestClient(user, password)); id != user {
			t.Error(user, err)
		}
	}
	if users := got.DigestUsers("Client", ""); len(users) != 0 {
		t.Error(users)
	}
}

func TestParseJAAS_Errors(t *testing.T) {
	for text, want := range map[string]string{
		"Server":                                    "line 1: expected {, found the end of the file",
		"Server {":                                  "line 1: expected a class or }, found the end of the file",
		"Server {\n a required":                     "line 2: expected an option or ;, found the end of the file",
		"Server { a planted; };":                    "line 1: after the class there must be required, requisite, sufficient or optional",
		"Server { a required planted; }":            "line 1: expected =, found the mark ;",
		"Server { a required k=\"planted\n\"; };":   "line 1: a quoted string does not end on its line",
		"Server { a required k=planted planted; };": "line 1: expected =, found the mark ;",
		"Server { a required k==planted; };":        "line 1: expected the value of an option, found the mark =",
		"Server { a required k=\"${planted}\"; };":  "line 1: a value names a property in ${} that is not set with -D",
		"Server { a required k=\"${planted\"; };":   "line 1: a value has ${ without }",
		"Server { a required; }":                    "line 1: expected ;, found the end of the file",
		"Server { };\nServer { };":                  `line 2: the section "Server" is there twice`,
		"# planted":                                 "line 1: # does not begin a comment here, // does",
		"/* planted":                                "line 1: a comment does not end",
		"; planted":                                 "line 1: expected the name of a section, found the mark ;",
	} {
		_, err := sasl.ParseJAAS(text, property)
		if err == nil || err.Error() != want || strings.Contains(err.Error(), "planted") {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestLoadJAAS_Permissions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jaas.conf")
	if _, _, err := sasl.LoadJAAS(path, property); err == nil || !strings.Contains(err.Error(), "JAAS file") {
		t.Error(err)
	}
	for mode, warned := range map[os.FileMode]bool{0o600: false, 0o640: false, 0o644: true} {
		if err := os.WriteFile(path, []byte(sample), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		j, warning, err := sasl.LoadJAAS(path, property)
		if err != nil || j == nil || (warning != "") != (warned && runtime.GOOS != "windows") || strings.Contains(warning, "secret") {
			t.Errorf("%o: %q, %v", mode, warning, err)
		}
	}
}

func FuzzJAAS(f *testing.F) {
	for _, seed := range []string{sample, "", "a{b required c=\"\\377\\8\\\";};", "a{b required c='${/}${x}';};", "//", "/*"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		j, err := sasl.ParseJAAS(text, property)
		if (j == nil) == (err == nil) {
			t.Fatal(j, err)
		}
		for name := range j {
			j.DigestUsers(name, "")
		}
	})
}
