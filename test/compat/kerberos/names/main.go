// Command names asks ZooKeeper's own classes which ids principals get under
// security.auth_to_local, kerberos.removeHostFromPrincipal and kerberos.removeRealmFromPrincipal,
// and writes the answers where the tests of sasl/kerberos/principal read them:
//
//	go run ./test/compat/kerberos/names
//
// The questions are the lines of that file: its first line says what is in the columns. A new line
// needs only the first four.
package main

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/install"
)

func main() { must.Program("names", run) }

func run(ctx context.Context, _ *flag.FlagSet, _ []string) {
	root := install.Root(ctx)
	file := filepath.Join(root, "sasl/kerberos/principal/testdata/names.golden")
	title, questions, _ := strings.Cut(string(must.Get(os.ReadFile(file))), "\n")
	cmd := exec.CommandContext(ctx, "java", "-Djava.security.krb5.realm=EX.TEST", "-Djava.security.krb5.kdc=127.0.0.1:1",
		"-cp", install.MavenZooKeeper(ctx, root), filepath.Join(root, "test/compat/kerberos/names/Names.java"))
	cmd.Stdin, cmd.Stderr = strings.NewReader(questions), os.Stderr
	answers := strings.Split(string(must.Get(cmd.Output())), "\n")
	answers = slices.DeleteFunc(answers, func(line string) bool { return !strings.HasPrefix(line, "= ") }) // log lines
	asked := slices.Collect(strings.Lines(questions))
	if len(asked) != len(answers) {
		must.Failf("%d questions and %d answers", len(asked), len(answers))
	}
	golden := title + "\n"
	for i, line := range asked {
		columns := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		golden += strings.Join(append(columns[:4], answers[i][2:]), "\t") + "\n"
	}
	must.Do(os.WriteFile(file, []byte(golden), 0o644))
}
