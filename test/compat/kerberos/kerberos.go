// Package kerberos authenticates real clients with Kerberos, against a KDC of MIT that it starts.
// The identities that a server gives a client are the lines.
package kerberos

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/sasl/kerberos"
	"github.com/gozkd/gozkd/test/compat/cases"
	"github.com/gozkd/gozkd/test/compat/install"
	"github.com/gozkd/gozkd/test/compat/kdc"
	"github.com/gozkd/gozkd/test/compat/server"
)

// principals are the clients.
var principals = []string{"alice@" + kdc.Realm, "zkcli/myhost.ex.test@" + kdc.Realm}

// Scripts are configurations of the servers, and one of gozkd alone: both mechanisms while the KDC
// gives the service a new key. Files are in dir.
func Scripts(ctx context.Context, dir string, gozkd *server.Kind) (list []cases.Script, end func() error) {
	w := prepare(ctx, install.Root(ctx), filepath.Join(dir, "kerberos"), gozkd)
	for _, setting := range []struct {
		name string
		keys map[string]string
	}{
		{"defaults", nil},
		{"short names", map[string]string{"kerberos.removeHostFromPrincipal": "true", "kerberos.removeRealmFromPrincipal": "true"}},
		{"rules", map[string]string{"security.auth_to_local": `RULE:[2:$1@$0](zkcli@.*)s/@.*/-svc/RULE:[1:$1](alice)s/^a/A/`}},
	} {
		list = append(list, cases.Script{Name: "kerberos, " + setting.name,
			Play: func(ctx context.Context, k *server.Kind) cases.Played { return w.play(ctx, k, setting.keys) }})
	}
	rotation := func(ctx context.Context, k *server.Kind) (p cases.Played) {
		if k.Name == server.Gozkd {
			if err := must.Try(func() { w.rotation(ctx) }); err != nil {
				p.Wrong = []string{err.Error()}
			}
		}
		return p
	}
	return append(list, cases.Script{Name: "kerberos, two mechanisms and a new key", Play: rotation}), w.kdc.Stop
}

// play lets each client authenticate with a server of these keys.
func (w *world) play(ctx context.Context, k *server.Kind, keys map[string]string) (played cases.Played) {
	opts := server.Options{Keys: w.keys(w.serverJaas), Memory: true}
	opts.Keys["authProvider.1"] = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
	maps.Copy(opts.Keys, keys)
	p := must.Get(k.Start(ctx, opts))
	defer must.Finally(p.Stop)
	for _, c := range w.cases() {
		got, err := c.run(ctx, p.Addr())
		ids := strings.Split(strings.TrimSpace(got), "\n")
		slices.Sort(ids) // ZooKeeper's have no order
		line := c.name + ": " + strings.Join(ids, "; ")
		if played.Lines = append(played.Lines, line); err != nil || !strings.Contains(line, "sasl:") {
			played.Wrong = append(played.Wrong, fmt.Sprintf("%s: %s: %v\n%s", p.Name(), line, err, p.Log()))
		}
	}
	return played
}

const service = "zookeeper/localhost@" + kdc.Realm

// clientTimeout bounds a client.
const clientTimeout = 90 * time.Second

// world is shared by all cases: a KDC with a service and clients, and the installed programs.
type world struct {
	root, dir  string
	gozkd      *server.Kind
	binary     string // gozkd
	kdc        *kdc.KDC
	keytab     string // of the clients
	serverJaas string
	cacheJaas  string // of clients with a ticket cache
	bothJaas   string // with DIGEST-MD5, for gozkd only
	classPath  string
	python     string
	cyrus      string
	caches     map[string]string // ticket caches by principal
	jaas       map[string]string // JAAS files by principal
}

func prepare(ctx context.Context, root, dir string, gozkd *server.Kind) *world {
	w := &world{root: root, dir: dir, gozkd: gozkd, binary: gozkd.Binary(), caches: make(map[string]string), jaas: make(map[string]string)}
	w.classPath = install.MavenZooKeeper(ctx, root)
	w.python = install.KazooWith(ctx, root, install.PureSASL)
	must.Do(os.MkdirAll(dir, 0o755))
	w.kdc = kdc.Start(ctx, root)
	w.cyrus = w.kdc.CompileWithSASL(ctx, filepath.Join(root, "test/compat/kerberos/cyrus/cyrus.c"))
	keys := w.kdc.Export(ctx, "zk.keytab", service)
	w.keytab = w.kdc.Export(ctx, "clients.keytab", principals...)
	login := fmt.Sprintf(`useKeyTab=true keyTab="%s" storeKey=true useTicketCache=false isInitiator=false principal="%s"`, keys, service)
	w.serverJaas = w.write("server.jaas", "Server", login)
	w.cacheJaas = w.write("cache.jaas", "Client", "useTicketCache=true")
	w.bothJaas = w.write("both.jaas", "Server", login+";\n  org.apache.zookeeper.server.auth.DigestLoginModule required user_bob=\""+password+"\"")
	for i, p := range principals {
		w.caches[p] = w.kdc.Cache(ctx, fmt.Sprintf("cache-%d", i), w.keytab, p)
		w.jaas[p] = w.write(fmt.Sprintf("client-%d.jaas", i), "Client", fmt.Sprintf(`useKeyTab=true keyTab="%s" storeKey=true useTicketCache=false principal="%s"`, w.keytab, p))
	}
	return w
}

func (w *world) write(file, section, options string) string {
	file = filepath.Join(w.dir, file)
	must.Do(os.WriteFile(file, []byte(section+" {\n  com.sun.security.auth.module.Krb5LoginModule required\n  "+options+";\n};\n"), 0o600))
	return file
}

// keys returns a zoo.cfg with Kerberos and this JAAS file.
func (w *world) keys(jaas string) map[string]string {
	keys := server.Defaults()
	keys["java.security.auth.login.config"], keys["java.security.krb5.conf"] = jaas, w.kdc.Conf
	return keys
}

// password is that of bob, a user of DIGEST-MD5.
const password = "hush-hush"

// rotation runs one gozkd with both mechanisms while the KDC gives the service a new key.
func (w *world) rotation(ctx context.Context) {
	p := must.Get(w.gozkd.Start(ctx, server.Options{Keys: w.keys(w.bothJaas), Memory: true}))
	defer must.Finally(p.Stop)
	secret := filepath.Join(w.dir, "password")
	must.Do(os.WriteFile(secret, []byte(password), 0o600))
	expect := func(what, want, got string, err error) {
		if err != nil || !strings.Contains(got, want) {
			must.Failf("%s: %q, want %q: %w\n%s", what, got, want, err, p.Log())
		}
	}
	ticket := func(what string, c kerberos.ClientConfig) {
		c.KeyTab, c.Principal = w.keytab, principals[0]
		got, err := w.own(ctx, p.Addr(), w.kdc.Conf, c)
		expect(what, "id sasl:"+principals[0], got, err)
	}
	digest := func(what string) {
		got, err := w.output(ctx, w.binary, "cli", "-server", p.Addr(), "--sasl-user", "bob", "--sasl-password-file", secret, "whoami")
		expect(what, "sasl: bob", got, err)
	}
	ticket("a ticket with the first key", kerberos.ClientConfig{})
	digest("DIGEST-MD5")
	w.kdc.Export(ctx, "zk.keytab", service)
	ticket("a ticket with the second key", kerberos.ClientConfig{Mutual: true})
	digest("DIGEST-MD5 again")
	if !strings.Contains(p.Log(), "the keytab was read again") || strings.Contains(p.Log(), password) {
		must.Failf("the log does not say that the keytab was read again, or has a password:\n%s", p.Log())
	}
}

// clientCase is a client with a principal.
type clientCase struct {
	name string
	run  func(ctx context.Context, addr string) (string, error)
}

func (w *world) cases() []clientCase {
	var cases []clientCase
	add := func(name, principal string, run func(ctx context.Context, addr string) (string, error)) {
		cases = append(cases, clientCase{name + " as " + principal, func(ctx context.Context, addr string) (string, error) {
			ctx, cancel := context.WithTimeout(ctx, clientTimeout)
			defer cancel()
			return run(ctx, addr)
		}})
	}
	for _, p := range principals {
		add("the Java client", p, func(ctx context.Context, addr string) (string, error) {
			return w.output(ctx, "java", "-Djava.security.auth.login.config="+w.jaas[p], "-Djava.security.krb5.conf="+w.kdc.Conf,
				"-Dzookeeper.server.principal="+service, "-cp", w.classPath, filepath.Join(w.root, "test/compat/kerberos/Whoami.java"), addr)
		})
		add("kazoo", p, func(ctx context.Context, addr string) (string, error) {
			addr = strings.Replace(addr, "127.0.0.1", "localhost", 1)
			return w.output(ctx, "env", "KRB5CCNAME=FILE:"+w.caches[p], "PYTHONPATH="+w.kdc.Python(), w.python, filepath.Join(w.root, "test/compat/kerberos/whoami.py"), addr)
		})
		add("Cyrus SASL", p, func(ctx context.Context, addr string) (string, error) {
			_, port, _ := strings.Cut(addr, ":")
			return w.output(ctx, "env", "KRB5CCNAME=FILE:"+w.caches[p], w.cyrus, port, "zookeeper", "localhost", "0")
		})
		add("gozkd cli", p, func(ctx context.Context, addr string) (string, error) {
			flags := "CLIENT_JVMFLAGS=-Djava.security.auth.login.config=" + w.jaas[p] + " -Djava.security.krb5.conf=" + w.kdc.Conf + " -Dzookeeper.server.principal=" + service
			return w.output(ctx, "env", flags, w.binary, "cli", "-server", addr, "whoami")
		})
		add("gozkd cli with a cache", p, func(ctx context.Context, addr string) (string, error) {
			flags := "CLIENT_JVMFLAGS=-Djava.security.krb5.conf=" + w.kdc.Conf + " -Dzookeeper.server.principal=" + service
			return w.output(ctx, "env", flags, "KRB5CCNAME=FILE:"+w.caches[p], w.binary, "cli", "-server", addr, "--jaas", w.cacheJaas, "whoami")
		})
		add("gozkd's client with a keytab", p, func(ctx context.Context, addr string) (string, error) {
			return w.own(ctx, addr, w.kdc.Conf, kerberos.ClientConfig{KeyTab: w.keytab, Principal: p})
		})
		add("gozkd's client with a cache, mutual", p, func(ctx context.Context, addr string) (string, error) {
			return w.own(ctx, addr, w.kdc.Conf, kerberos.ClientConfig{TicketCache: "FILE:" + w.caches[p], Mutual: true})
		})
	}
	for _, enctype := range enctypes {
		add("Cyrus SASL with "+enctype, principals[0], func(ctx context.Context, addr string) (string, error) {
			kdc, cache := w.only(ctx, enctype)
			_, port, _ := strings.Cut(addr, ":")
			return w.output(ctx, "env", "KRB5_CONFIG="+kdc.Conf, "KRB5CCNAME=FILE:"+cache, w.cyrus, port, "zookeeper", "localhost", "0")
		})
		add("gozkd's client with "+enctype, principals[0], func(ctx context.Context, addr string) (string, error) {
			kdc, cache := w.only(ctx, enctype)
			return w.own(ctx, addr, kdc.Conf, kerberos.ClientConfig{TicketCache: cache, Mutual: true})
		})
	}
	return cases
}

// enctypes are the encryption types of session keys.
var enctypes = []string{"aes128-cts-hmac-sha1-96", "aes256-cts-hmac-sha1-96", "aes128-cts-hmac-sha256-128", "aes256-cts-hmac-sha384-192"}

// only logs in with one encryption type.
func (w *world) only(ctx context.Context, enctype string) (k *kdc.KDC, cache string) {
	k = w.kdc.Only(enctype)
	return k, k.Cache(ctx, enctype, w.keytab, principals[0])
}

// own authenticates our client, and returns its identities, one on each line.
func (w *world) own(ctx context.Context, addr, krb5conf string, c kerberos.ClientConfig) (ids string, err error) {
	err = must.Try(func() {
		c.Conf = must.Get(kerberos.LoadConf(krb5conf))
		addr = strings.Replace(addr, "127.0.0.1", "localhost", 1) // the host of the service
		conn := must.Get(client.Connect(ctx, client.Config{Servers: []string{addr}, SASL: must.Get(kerberos.NewClient(c))}))
		defer must.Finally(conn.Close)
		for _, id := range must.Get(conn.WhoAmI(ctx)) {
			ids += fmt.Sprintf("id %s:%s\n", id.Scheme, id.User)
		}
	})
	return ids, err
}

// output runs a program with MIT's environment and returns the lines of its standard output that
// are no log lines.
func (w *world) output(ctx context.Context, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = w.kdc.Env()
	var errOut strings.Builder
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	var lines strings.Builder
	for line := range strings.Lines(string(out)) {
		for _, prefix := range []string{"state ", "id ", "acl ", "data ", "sasl: "} {
			if strings.HasPrefix(line, prefix) {
				lines.WriteString(line)
			}
		}
	}
	if err != nil {
		err = fmt.Errorf("%w\n%s%s", err, out, errOut.String())
	}
	return lines.String(), err
}
