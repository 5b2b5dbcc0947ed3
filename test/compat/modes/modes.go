// Package modes plays scripts of local sessions, of slow readers and of read-only mode on
// ensembles, with the bytes of the protocol, with the Java client and with kazoo.
package modes

import (
	"context"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/test/compat/cases"
	"github.com/gozkd/gozkd/test/compat/install"
	"github.com/gozkd/gozkd/test/compat/server"
)

// Scripts are played on ensembles whose local sessions are upgraded, and are not.
func Scripts(ctx context.Context, _ string, _ *server.Kind) (list []cases.Script, end func() error) {
	root := install.Root(ctx)
	for _, upgrades := range []string{"false", "true"} {
		list = append(list, cases.Script{Name: "modes, upgrades " + upgrades, Intended: intended,
			Play: func(ctx context.Context, k *server.Kind) cases.Played { return played(ctx, root, upgrades, k) }})
	}
	return list, func() error { return nil }
}

// intended reports whether a difference is local-multi in docs/reference/differences.md.
func intended(w, g string) bool {
	return strings.Contains(w, "follower: ") && strings.ReplaceAll(w, proto.ErrSessionExpired.String(), proto.ErrEphemeralOnLocalSession.String()) == g
}

// played plays the scripts on a new ensemble, and returns what the clients saw.
func played(ctx context.Context, root, upgrades string, k *server.Kind) cases.Played {
	keys := server.Defaults()
	keys["localSessionsEnabled"], keys["localSessionsUpgradingEnabled"] = "true", upgrades
	keys["readonlymode.enabled"] = "true" // for gozkd; ZooKeeper reads the property
	e := must.Get(k.StartEnsemble(ctx, server.EnsembleOptions{
		Members: 3, Keys: keys,
		JVMFlags: []string{"-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dreadonlymode.enabled=true"},
	}))
	defer must.Finally(e.Stop)
	p := &player{ctx: ctx, e: e}
	err := must.Try(func() {
		p.localSessions()
		if upgrades == "false" {
			p.slowReaders()
		} else {
			java := install.Java(root, "256m", install.JavaClient(ctx, root))
			p.readOnly([]*script{
				startScript(ctx, "kazoo", install.Kazoo(ctx, root), root+"/test/compat/kazoo/modes.py", strings.Join(e.Addrs(), ",")),
				startScript(ctx, "Java", append(java, "Modes", strings.Join(e.Addrs(), ","))...),
			})
		}
	})
	if err != nil {
		must.Failf("%s: %w\n%s\n%s", e.Name(), err, strings.Join(p.lines, "\n"), e.Log())
	}
	return cases.Played{Lines: p.lines}
}
