// Package security plays tables of SASL, ACL and enforcement cases byte by byte.
package security

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/cases"
	"github.com/gozkd/gozkd/test/compat/server"
)

// Scripts are the tables. The JAAS file of their servers is in dir.
func Scripts(_ context.Context, dir string, _ *server.Kind) (list []cases.Script, end func() error) {
	jaas := filepath.Join(dir, "jaas.conf")
	must.Do(os.WriteFile(jaas, []byte(jaasText), 0o600))
	for _, t := range readTables(tablesText) {
		list = append(list, cases.Script{Name: "security, " + t.name, Intended: intended,
			Play: func(ctx context.Context, k *server.Kind) cases.Played { return t.play(ctx, k, jaas) }})
	}
	return list, func() error { return nil }
}

// intended reports whether a row may differ, or has no answer because ZooKeeper does not start.
func intended(zooKeeper, _ string) bool {
	name, _, _ := strings.Cut(zooKeeper, answerMark)
	return zooKeeper == "" || allowed[name] != ""
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
func (t *table) play(ctx context.Context, k *server.Kind, jaas string) cases.Played {
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
		return cases.Played{Lines: []string{name("start") + "does not start"}}
	}
	defer func() { must.Do(p.Kill()) }()
	answers := []string{name("start") + "starts"}
	for _, r := range t.rows {
		c := &player{ctx: ctx, addr: p.Addr()}
		answers = append(answers, name(r.name)+c.play(r.acts))
		c.closeAll()
	}
	return cases.Played{Lines: answers}
}
