// Command security plays tables of SASL, ACL and enforcement cases byte by byte on ZooKeeper 3.9
// and on gozkd, and prints each row where the two answer differently.
//
// Exit status: 1 if the servers differ or cannot be asked, 2 for wrong usage.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/cases"
	"github.com/gozkd/gozkd/test/compat/server"
)

func main() { must.Program("security", run) }

func run(ctx context.Context, args []string) {
	flags := flag.NewFlagSet("security", flag.ContinueOnError)
	binary := flags.String("gozkd", "", "the gozkd to test (default: build cmd/gozkd)")
	only := flags.String("run", "", "only tables whose name contains this")
	verbose := flags.Bool("v", false, "print the answers of all rows")
	must.Parsed(flags.Parse(args))
	dir := must.Get(os.MkdirTemp("", "gozkd-security-"))
	defer func() { must.Do(os.RemoveAll(dir)) }()
	jaas := filepath.Join(dir, "jaas.conf")
	must.Do(os.WriteFile(jaas, []byte(jaasText), 0o600))
	twins := server.Twins(ctx, *binary, dir)
	rows, allowances, different := 0, 0, 0
	for _, t := range readTables(tablesText) {
		if !strings.Contains(t.name, *only) {
			continue
		}
		want, got := t.play(ctx, &twins[0], jaas), t.play(ctx, &twins[1], jaas)
		got = got[:min(len(got), len(want))] // ZooKeeper may not start where gozkd does
		more, intended := cases.Compare(want, got, *verbose, func(want, _ string) bool {
			name, _, _ := strings.Cut(want, answerMark)
			why, known := allowed[name]
			if known && *verbose {
				fmt.Println(name + answerMark + why)
			}
			return known
		})
		rows, allowances, different = rows+len(want), allowances+intended, different+more
	}
	fmt.Printf("%d rows, %d differ as docs/reference/differences.md says, %d others\n", rows, allowances, different)
	if different > 0 || rows == 0 {
		must.Failf("security: %d rows differ", different)
	}
}

// jaasText has the users of all tables: each has the password NAME-secret.
const jaasText = `Server {
	org.apache.zookeeper.server.auth.DigestLoginModule required
	user_super="super-secret" user_bob="bob-secret" user_eve="eve-secret" user_X="X-secret" user_jürgen="jürgen-secret";
};
`

// answerMark stands between the name of a row and its answer.
const answerMark = ": "

// play returns how the start went and the answer of each row, each after the row's name.
func (t *table) play(ctx context.Context, k *server.Kind, jaas string) []string {
	name := func(row string) string { return t.name + ", " + row + answerMark }
	keys := server.Defaults()
	for name, value := range t.keys {
		keys[name] = strings.ReplaceAll(value, "JAAS", jaas)
	}
	starting, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	p, err := k.Start(starting, server.Options{Keys: keys})
	if err != nil {
		if len(t.rows) > 0 {
			fmt.Println(t.name, err)
		}
		return []string{name("start") + "does not start"}
	}
	defer func() { must.Do(p.Kill()) }()
	answers := []string{name("start") + "starts"}
	for _, r := range t.rows {
		c := &player{ctx: ctx, addr: p.Addr()}
		answers = append(answers, name(r.name)+c.play(r.acts))
		c.closeAll()
	}
	return answers
}
