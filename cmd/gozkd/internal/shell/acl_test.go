package shell

import (
	"slices"
	"testing"
)

// TestACLEntries_Commas checks which commas of an ACL belong to a subject.
func TestACLEntries_Commas(t *testing.T) {
	for _, c := range []struct {
		acl  string
		want []string
	}{
		{"world:anyone:r,digest:a:b:cdrwa", []string{"world:anyone:r", "digest:a:b:cdrwa"}},
		{",world:anyone:r,,sasl:bob:w,,", []string{"", "world:anyone:r", "", "sasl:bob:w"}},
		{",", []string{""}},
		{"x509:CN=alice:r,x509:CN=bob:w", []string{"x509:CN=alice:r", "x509:CN=bob:w"}},
		{"x509:CN=alice,OU=Eng,C=DE:cdrwa,world:anyone:r", []string{"x509:CN=alice,OU=Eng,C=DE:cdrwa", "world:anyone:r"}},
		{`x509:CN=a,O=Example\\, Inc.,2.5.4.5=#13023432:r,sasl:bob@EX.TEST:w`, []string{`x509:CN=a,O=Example\\, Inc.,2.5.4.5=#13023432:r`, "sasl:bob@EX.TEST:w"}},
		{"x509:CN=a+UID=u:v,OU=x:y:rw", []string{"x509:CN=a+UID=u:v,OU=x:y:rw"}},
		// as in zkCli.sh
		{"x509:CN=alice,world:anyone:r", []string{"x509:CN=alice", "world:anyone:r"}},
		{"x509:CN=alice,OU=Eng", []string{"x509:CN=alice", "OU=Eng"}},
		{"x509:CN=alice,OU=Eng,world:anyone:r", []string{"x509:CN=alice", "OU=Eng", "world:anyone:r"}},
		{"sasl:CN=alice,OU=Eng:r", []string{"sasl:CN=alice", "OU=Eng:r"}},
	} {
		if got := aclEntries(c.acl); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q", c.acl, got)
		}
	}
}
