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
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/install"
	"github.com/gozkd/gozkd/test/compat/server"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := must.Main("security", flag.ErrHelp, func() { run(ctx, os.Args[1:]) })
	stop()
	os.Exit(status)
}

func run(ctx context.Context, args []string) {
	flags := flag.NewFlagSet("security", flag.ContinueOnError)
	binary := flags.String("gozkd", "", "the gozkd to test (default: build cmd/gozkd)")
	only := flags.String("run", "", "only tables whose name contains this")
	verbose := flags.Bool("v", false, "print the answers of all rows")
	must.Parsed(flags.Parse(args))
	root := install.Root(ctx)
	dir := must.Get(os.MkdirTemp("", "gozkd-security-"))
	defer func() { must.Do(os.RemoveAll(dir)) }()
	if *binary == "" {
		*binary = must.Get(server.BuildGozkd(ctx, root, dir))
	}
	jaas := filepath.Join(dir, "jaas.conf")
	must.Do(os.WriteFile(jaas, []byte(jaasText), 0o600))
	rows, allowances, different := 0, 0, 0
	for _, t := range tables {
		if !strings.Contains(t.name, *only) {
			continue
		}
		var answers [2][]string
		for i, start := range []func(context.Context, server.Options) (*server.Process, error){
			func(ctx context.Context, o server.Options) (*server.Process, error) {
				return server.StartZooKeeper(ctx, server.Maven, o)
			},
			func(ctx context.Context, o server.Options) (*server.Process, error) {
				return server.StartGozkd(ctx, *binary, o)
			},
		} {
			answers[i] = t.play(ctx, start, jaas)
		}
		for i, a := range answers[0] {
			name := "start"
			if i > 0 {
				name = t.rows[i-1].name
			}
			rows++
			b := "not played"
			if i < len(answers[1]) {
				b = answers[1][i]
			}
			why, known := allowed[t.name+", "+name]
			switch {
			case a != b && known:
				allowances++
				if *verbose {
					fmt.Printf("%s, %s: %s\n", t.name, name, why)
				}
			case a != b:
				different++
				fmt.Printf("%s, %s\n  ZooKeeper  %s\n  gozkd      %s\n", t.name, name, a, b)
			case *verbose:
				fmt.Printf("%s, %s\n  both       %s\n", t.name, name, a)
			}
		}
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

// table is a configuration, and the acts of clients on a server that has it.
type table struct {
	name string
	keys string // lines of zoo.cfg; JAAS stands for the path of the JAAS file
	rows []row
}

// row is the acts of some connections. do returns the text that is compared.
type row struct {
	name string
	do   func(c *player) string
}

// play returns how the start went and the answer of each row.
func (t *table) play(ctx context.Context, start func(context.Context, server.Options) (*server.Process, error), jaas string) []string {
	keys := server.Defaults()
	for line := range strings.Lines(strings.ReplaceAll(t.keys, "JAAS", jaas)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		keys[name] = value
	}
	starting, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	p, err := start(starting, server.Options{Keys: keys})
	if err != nil {
		if len(t.rows) > 0 {
			fmt.Println(t.name, err)
		}
		return []string{"does not start"}
	}
	defer func() { must.Do(p.Kill()) }()
	answers := []string{"starts"}
	for _, r := range t.rows {
		c := &player{ctx: ctx, addr: p.Addr()}
		answers = append(answers, r.do(c))
		c.closeAll()
	}
	return answers
}
