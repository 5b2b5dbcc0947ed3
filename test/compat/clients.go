package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/test/compat/cases"
	"github.com/gozkd/gozkd/test/compat/install"
	"github.com/gozkd/gozkd/test/compat/interop"
	"github.com/gozkd/gozkd/test/compat/server"
	"github.com/gozkd/gozkd/test/compat/shell"
)

// client is a script for a client library.
type client struct {
	name string
	// install fetches and builds the requirements of run, once, before any client runs.
	install func(ctx context.Context, root string)
	run     func(ctx context.Context, root string, at place) (cases.Report, error)
	format  string // of the server's stores for a client with TLS
	sasl    bool   // the client authenticates with DIGEST-MD5
	faults  bool   // for an ensemble under faults, which only gozkd can run
	// otherwise names cases that end with an error that contains a text, because they expect a
	// client without a certificate or a user.
	otherwise map[string]string
	// notOn names a server that the client does not apply to.
	notOn string
}

// runsOn reports whether the client applies to a server.
func (c client) runsOn(t server.Kind) bool {
	return t.Name != c.notOn && (!c.faults || t.Name == server.Gozkd)
}

func (c client) flagName() string { return c.name }

func clients() []client {
	kazoo := func(ctx context.Context, root string) { install.Kazoo(ctx, root) }
	secureC := func(ctx context.Context, root string) { install.SecureCClient(ctx, root) }
	// The case acl begins by asking for an ACL of the client's identities without any.
	cHasIdentity := map[string]string{"acl": "got 0 (ok), want -114"}
	java := func(ctx context.Context, root string) { install.JavaClient(ctx, root) }
	maven := func(ctx context.Context, root string) { install.MavenZooKeeper(ctx, root) }
	return []client{
		{name: "kazoo", install: kazoo, run: func(ctx context.Context, root string, at place) (cases.Report, error) {
			return script(ctx, install.Kazoo(ctx, root), root+"/test/compat/kazoo/compat.py", at.addr, server.SuperPassword)
		}},
		{name: "kazoo-faults", install: kazoo, faults: true, run: func(ctx context.Context, root string, at place) (cases.Report, error) {
			return script(ctx, install.Kazoo(ctx, root), root+"/test/compat/kazoo/faults.py", at.portFile)
		}},
		{name: "zkcli-3.8", install: func(ctx context.Context, _ string) { install.DebianShell(ctx) },
			run: func(ctx context.Context, _ string, at place) (cases.Report, error) {
				return shell.DebianZkCli(ctx, at.addr)
			}},
		{name: "zkcli-3.9", install: maven, run: func(ctx context.Context, root string, at place) (cases.Report, error) {
			return shell.MavenZkCli(ctx, root, at.addr)
		}},
		// Shell and server must be of the same release: an older server lacks some commands.
		{name: "cli", install: func(ctx context.Context, root string) { shell.BuildCLI(ctx, root); maven(ctx, root) },
			run: func(ctx context.Context, root string, at place) (cases.Report, error) {
				return shell.Twin(ctx, root, shell.CLIPath(root), at.addr)
			}, notOn: "zookeeper-" + server.Debian},
		{name: "cli_mt", install: func(ctx context.Context, _ string) { install.CShell(ctx) },
			run: func(ctx context.Context, _ string, at place) (cases.Report, error) { return shell.CliMT(ctx, at.addr) }},
		{name: "libzookeeper_mt", install: func(ctx context.Context, root string) { install.CClient(ctx, root) },
			run: func(ctx context.Context, root string, at place) (cases.Report, error) {
				return script(ctx, install.CClient(ctx, root), at.addr, server.SuperPassword)
			}},
		{name: "libzookeeper_mt-tls", install: secureC, format: "PKCS12", notOn: "zookeeper-" + server.Debian, otherwise: cHasIdentity,
			run: func(ctx context.Context, root string, at place) (cases.Report, error) {
				files := strings.Join([]string{at.stores.File("ca.pem"), at.stores.File("client.crt"), at.stores.File("client.key"), ""}, ",")
				return script(ctx, "env", "COMPAT_TLS="+files, install.SecureCClient(ctx, root), at.addr, server.SuperPassword)
			}},
		{name: "libzookeeper_mt-digest", install: secureC, otherwise: cHasIdentity,
			sasl: true, run: func(ctx context.Context, root string, at place) (cases.Report, error) {
				return script(ctx, "env", "COMPAT_SASL="+at.user.Name, "COMPAT_SASL_PASSWORD="+at.user.PasswordFile, install.SecureCClient(ctx, root), at.addr, server.SuperPassword)
			}},
		{name: "java", install: java, run: javaScript("zookeeper", "")},
		{name: "curator", install: java, run: javaScript("curator", "")},
		{name: "curator-faults", install: java, faults: true, run: javaScript("curator-faults", "")},
		{name: "recipes", install: func(context.Context, string) {}, run: runEssentials},
		{name: "kazoo-tls", install: kazoo, format: "JKS", notOn: "zookeeper-" + server.Debian,
			otherwise: map[string]string{
				"acl_creator_all":   `Id(scheme='x509', id='CN=alice,OU=Eng,O=Example\\, Inc.,C=DE'))], want`,
				"four_letter_words": "'int' object has no attribute 'decode'", // kazoo reads an answer with TLS wrongly
				"server_version":    "'int' object has no attribute 'decode'",
			},
			run: func(ctx context.Context, root string, at place) (cases.Report, error) {
				return script(ctx, install.Kazoo(ctx, root), root+"/test/compat/kazoo/compat.py", at.addr, server.SuperPassword,
					at.stores.File("ca.pem"), at.stores.File("client.crt"), at.stores.File("client.key"))
			}},
		{name: "kazoo-digest", otherwise: map[string]string{"acl_creator_all": "Id(scheme='sasl', id='alice')), ACL("}, install: func(ctx context.Context, root string) { install.KazooWith(ctx, root, install.PureSASL) },
			sasl: true, run: func(ctx context.Context, root string, at place) (cases.Report, error) {
				return script(ctx, install.Kazoo(ctx, root), root+"/test/compat/kazoo/compat.py", at.addr, server.SuperPassword, at.user.Name, at.user.Password)
			}},
		{name: "java-tls", install: java, format: "JKS", notOn: "zookeeper-" + server.Debian, run: javaScript("zookeeper", "PEM"),
			otherwise: map[string]string{
				"acl":      "/a, want InvalidACLException",
				"who_am_i": "got [digest:ann, ip:127.0.0.1, x509:" + server.ClientSubject + "], want",
			}},
		{name: "curator-tls", install: java, format: "PKCS12", notOn: "zookeeper-" + server.Debian, run: javaScript("curator", "JKS")},
		{name: "zkcli-3.9-tls", install: maven, format: "PEM", notOn: "zookeeper-" + server.Debian,
			otherwise: map[string]string{"whoami": fmt.Sprintf("%q", "Auth scheme: User\nx509: "+server.ClientSubject+"\nip: 127.0.0.1\n")},
			run: func(ctx context.Context, root string, at place) (cases.Report, error) {
				return shell.MavenZkCli(ctx, root, at.addr, at.stores.JavaFlags("PKCS12")...)
			}},
		sharing("recipes-curator", interop.GoPeer, interop.CuratorPeer),
		sharing("recipes-kazoo", interop.GoPeer, interop.KazooPeer),
		sharing("recipes-all", interop.GoPeer, interop.CuratorPeer, interop.KazooPeer),
	}
}

// javaScript runs the Java program's part for a library; with TLS and stores, if format is set.
func javaScript(library, format string) func(ctx context.Context, root string, at place) (cases.Report, error) {
	return func(ctx context.Context, root string, at place) (cases.Report, error) {
		java := install.Java(root, "256m", install.JavaClient(ctx, root))
		if format != "" {
			java = slices.Insert(java, 1, at.stores.JavaFlags(format)...)
		}
		// Curator does not know its own version at run time.
		curator := install.MavenVersion(root, "curator-recipes")
		return script(ctx, java[0], append(java[1:], "Compat", library, cmp.Or(at.portFile, at.addr), server.SuperPassword, curator)...)
	}
}

// sharing is a client that lets processes of several languages share recipes.
func sharing(name string, languages ...interop.Language) client {
	var commands []interop.Command // set by install: a program in use must not be built again
	return client{
		name: name,
		install: func(ctx context.Context, root string) {
			for _, l := range languages {
				commands = append(commands, l(ctx, root))
			}
		},
		run: func(ctx context.Context, _ string, at place) (cases.Report, error) {
			return interop.Run(ctx, at.addr, commands, recipesSeed)
		},
	}
}

// recipesSeed is the seed of random decisions; how peers interleave is up to the machine.
const recipesSeed = 1

// runEssentials runs the tests of our recipes that any server must pass.
func runEssentials(ctx context.Context, root string, at place) (cases.Report, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-json", "-count=1", "-run", "^TestEssentials", "./recipes/...")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOZKD_RECIPES_SERVERS="+at.addr)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	runErr := cmd.Run()
	// Nothing may be skipped on a real server.
	report, err := cases.ParseTests(&out, func(output string) string { return output })
	report.Version, report.Log = "as here", errOut.String()+report.Log
	if runErr != nil && report.OK() { // a package that does not build, or a leak after its tests
		err = errors.Join(fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), runErr), err)
	}
	return report, err
}
