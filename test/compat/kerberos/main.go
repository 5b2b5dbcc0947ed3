// Command kerberos authenticates real clients with Kerberos at ZooKeeper 3.9 and at gozkd, against
// a KDC of MIT that it starts, and compares the identities that the servers give them. It installs
// its requirements; docs/quality/compatibility.md describes it.
//
//	go run ./test/compat/kerberos [-gozkd BINARY] [-v]
//
// Exit status: 1 if a case failed, 2 for wrong usage.
package main

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/install"
	"github.com/gozkd/gozkd/test/compat/kdc"
)

func main() { must.Program("kerberos", run) }

// setting is a configuration of both servers.
type setting struct {
	name string
	keys map[string]string
}

var settings = []setting{
	{"defaults", nil},
	{"short names", map[string]string{"kerberos.removeHostFromPrincipal": "true", "kerberos.removeRealmFromPrincipal": "true"}},
	{"rules", map[string]string{"security.auth_to_local": `RULE:[2:$1@$0](zkcli@.*)s/@.*/-svc/RULE:[1:$1](alice)s/^a/A/`}},
}

// principals are the clients.
var principals = []string{"alice@" + kdc.Realm, "zkcli/myhost.ex.test@" + kdc.Realm}

func run(ctx context.Context, args []string) {
	flags := flag.NewFlagSet("kerberos", flag.ContinueOnError)
	binary := flags.String("gozkd", "", "the gozkd to test (default: build cmd/gozkd)")
	verbose := flags.Bool("v", false, "print every case")
	must.Parsed(flags.Parse(args))
	w := prepare(ctx, install.Root(ctx), *binary)
	defer w.close()
	failed, passed := 0, 0
	for _, s := range settings {
		outputs := make(map[string]string) // of ZooKeeper, by case
		for _, t := range w.targets() {
			func() {
				p := must.Get(t.start(ctx, s.keys))
				defer func() { must.Do(p.Stop()) }()
				for _, c := range w.cases() {
					got, err := c.run(ctx, p.Addr())
					got = sorted(got)
					name := s.name + ", " + c.name
					want, known := outputs[name]
					switch {
					case err == nil && !strings.Contains(got, "sasl:"):
						err = fmt.Errorf("no sasl identity in:\n%s", got)
					case err == nil && known && got != want:
						err = fmt.Errorf("it got\n%sand on ZooKeeper\n%s", got, want)
					}
					outputs[name] = got
					if err != nil {
						failed++
						fmt.Printf("FAILED %s: %s: %v\n%s\n", t.name, name, err, p.Log())
					} else if passed++; *verbose {
						fmt.Printf("passed %s: %s: %s\n", t.name, name, strings.ReplaceAll(strings.TrimSpace(got), "\n", "; "))
					}
				}
			}()
		}
	}
	if log, err := w.rotation(ctx); err != nil {
		failed++
		fmt.Printf("FAILED gozkd: two mechanisms, and a new key: %v\n%s\n", err, log)
	} else {
		passed++
	}
	fmt.Printf("%d cases passed, %d failed\n", passed, failed)
	if failed > 0 {
		must.Failf("not everything passed")
	}
}

// sorted sorts lines, because ZooKeeper's identities have no order.
func sorted(lines string) string {
	list := slices.Collect(strings.Lines(lines))
	slices.Sort(list)
	return strings.Join(list, "")
}
