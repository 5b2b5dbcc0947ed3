// Command names asks ZooKeeper's own classes which ids principals get under
// security.auth_to_local, kerberos.removeHostFromPrincipal and kerberos.removeRealmFromPrincipal,
// and writes the answers where the tests of sasl/kerberos/principal read them:
//
//	go run ./test/compat/kerberos/names
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/install"
)

const realm = "EX.TEST"

var names = []string{
	"alice@EX.TEST", "alice", "alice@", "@EX.TEST", "", "alice@OTHER.TEST", "Alice@EX.TEST",
	"zookeeper/host1.ex.test@EX.TEST", "zookeeper/host1.ex.test@OTHER.TEST", "a/@EX.TEST", "/b@EX.TEST",
	"a/b/c@EX.TEST", "a@b@c", "a/b", "bob/admin@EX.TEST", "hbase/h-17.ex.test@EX.TEST", "user one@EX.TEST",
	"ü@EX.TEST", "svc$a@EX.TEST", "aaa/aab@EX.TEST", "x.y_z-1@EX.TEST",
}

var rules = []string{
	"DEFAULT",
	"", "  DEFAULT  ", "DEFAULTDEFAULT", "NONSENSE", "RULE:[1:$1]", "RULE:[1:$1] RULE:[2:$1]",
	"RULE:[1:$1@$0](.*@EX\\.TEST)s/@.*//DEFAULT",
	"RULE:[1:$1@$0](.*@EX\\.TEST)s/@.*//\nDEFAULT",
	"RULE:[2:$1@$0](zookeeper@.*)s/.*/zk/DEFAULT",
	"RULE:[2:$1@$0](.*)s/.*/zk/",
	"RULE:[2:$1%$2](hbase%.*)s/%.*//RULE:[1:$1]",
	"RULE:[2:$1;$2](^.*;admin$)s/;admin$//DEFAULT",
	"RULE:[1:$1@$0](.*@OTHER\\.TEST)s/([a-z]+)@.*/$1_other/DEFAULT",
	"RULE:[1:$1@$0]", "RULE:[2:$2]", "RULE:[2:$2$1]", "RULE:[2:x$1y$2z]",
	"RULE:[1:$1]s/a/b/", "RULE:[1:$1]s/a/b/g", "RULE:[2:$1]s/a/b/g", "RULE:[1:$1]s/(a)(l)/$2$1/",
	"RULE:[1:$1]s/(a)(l)/$21/", "RULE:[1:$1]s/[aeiou]//g", "RULE:[1:$1]s/[^a-z]/_/g",
	"RULE:[1:$1]s/\\w+/\\$x/", "RULE:[1:$1](a.*)", "RULE:[1:$1](ALICE)", "RULE:[1:$1](lic)", "RULE:[1:$1]()",
	"RULE:[1:$1]s/l{1}/L/", "RULE:[1:$1]s/i|c/x/g", "RULE:[1:$1]s/(?:li)(c)/<$1>/", "RULE:[1:$1]s/.$/!/",
	"RULE:[1:$1]s/\\./-/g", "RULE:[1:$1]s/\\s//g", "RULE:[1:$1]s/\\D+$//", "RULE:[1:]", "RULE:[3:$3]", "RULE:[0:x]",
	"RULE:[1:$1]s/a/b/L", "RULE:[1:$1]/L", "RULE:[:$1]", "RULE:[1:$1", "RULE:[1:$1](", "RULE:[2:$1/$2]",
	// Refused here, whatever Java makes of them.
	"RULE:[1:$2]", "RULE:[1:$]", "RULE:[1:$1]s/x*/-/g", "RULE:[1:$1]s/a*+/b/", "RULE:[1:$1]s/(?i)A/b/",
	"RULE:[1:$1]s/(?=a)/b/", "RULE:[1:$1]s/[a-z&&[^l]]/b/", "RULE:[1:$1]s/\\bal/b/", "RULE:[1:$1]s/(a)\\1/b/",
	"RULE:[1:$1]s/a/$1/", "RULE:[1:$1]s/a/$/", "RULE:[1:$1]s/a/\\/", "RULE:[1:$1]s/[[:alpha:]]/b/", "RULE:[1:$1](*)",
}

func main() { os.Exit(must.Main("names", nil, run)) }

func run() {
	ctx := context.Background()
	root := install.Root(ctx)
	var questions bytes.Buffer
	for _, rule := range rules {
		for _, name := range names {
			for _, remove := range []string{"false\tfalse", "true\tfalse", "false\ttrue", "true\ttrue"} {
				if rule != "DEFAULT" && remove != "false\tfalse" && remove != "true\ttrue" {
					continue
				}
				fmt.Fprintf(&questions, "%s\t%s\t%s\n", strings.ReplaceAll(rule, "\n", " "), remove, name)
			}
		}
	}
	asked := questions.Bytes()
	cmd := exec.CommandContext(ctx, "java", "-Djava.security.krb5.realm="+realm, "-Djava.security.krb5.kdc=127.0.0.1:1",
		"-cp", install.MavenZooKeeper(ctx, root), filepath.Join(root, "test/compat/kerberos/names/Names.java"))
	cmd.Stdin = bytes.NewReader(asked)
	cmd.Stderr = os.Stderr
	answers := must.Get(cmd.Output())
	q := strings.Split(strings.TrimSuffix(string(asked), "\n"), "\n")
	var a []string
	for line := range strings.Lines(string(answers)) { // with log lines between
		if answer, ok := strings.CutPrefix(line, "= "); ok {
			a = append(a, strings.TrimSuffix(answer, "\n"))
		}
	}
	if len(q) != len(a) {
		must.Failf("%d questions and %d answers", len(q), len(a))
	}
	var golden strings.Builder
	fmt.Fprintf(&golden, "# ZooKeeper's ids of principals, default realm %s: rules, remove host, remove realm, name, result, id. Made by: go run ./test/compat/kerberos/names\n", realm)
	for i := range q {
		golden.WriteString(q[i] + "\t" + a[i] + "\n")
	}
	must.Do(os.WriteFile(filepath.Join(root, "sasl/kerberos/principal/testdata/names.golden"), []byte(golden.String()), 0o644))
}
