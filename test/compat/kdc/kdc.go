// Package kdc runs a KDC of MIT for compatibility tests: on loopback, over TCP only, without root,
// and with its files in a temporary directory.
package kdc

import (
	"context"
	"embed"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/install"
	"github.com/gozkd/gozkd/test/compat/server"
)

// Realm is the realm of the KDC.
const Realm = "EX.TEST"

// packages hold the KDC, its tools, kinit, the libraries of the same version, Python's module
// kerberos, and Cyrus SASL.
var packages = []string{
	"krb5-kdc", "krb5-admin-server", "krb5-user", "libkdb5-10", "libkadm5srv-mit12", "libkadm5clnt-mit12", "libgssrpc4",
	"libverto1", "libverto-libev1", "libev4", "libkrb5-3", "libgssapi-krb5-2", "libk5crypto3", "libkrb5support0",
	"python3-kerberos", "libsasl2-2", "libsasl2-dev", "libsasl2-modules-gssapi-mit",
}

// KDC is a running KDC.
type KDC struct {
	// Conf is its krb5.conf, for clients and servers.
	Conf string

	dir, root string
	env       []string
	process   *server.Process
}

// Start installs a KDC if necessary, starts a KDC with an empty database, and returns when the KDC
// answers. Errors of this package end the work (see package must).
func Start(ctx context.Context, repository string) *KDC {
	k := &KDC{root: install.Debs(ctx, repository, "kdc", packages...), dir: must.Get(os.MkdirTemp("", "gozkd-kdc-"))}
	err := must.Try(func() {
		port := must.Get(server.FreePorts(1))[0]
		k.configure(port)
		k.Run(ctx, "usr/sbin/kdb5_util", "create", "-s", "-r", Realm, "-P", "master")
		k.start(ctx, port)
	})
	if err != nil {
		must.Do(errors.Join(err, k.Stop()))
	}
	return k
}

// configurations are templates of the files of a KDC.
//
//go:embed krb5.conf kdc.conf
var configurations embed.FS

func (k *KDC) configure(port int) {
	k.Conf = filepath.Join(k.dir, "krb5.conf")
	profile := filepath.Join(k.dir, "kdc.conf")
	modules := must.Get(filepath.Glob(filepath.Join(k.root, "usr/lib/*/krb5/plugins/kdb")))
	if len(modules) == 0 {
		must.Failf("kdc: no database module below %s", k.root)
	}
	k.env = append(os.Environ(), "LD_LIBRARY_PATH="+install.DebLibraries(k.root), "KRB5_CONFIG="+k.Conf, "KRB5_KDC_PROFILE="+profile,
		"SASL_PATH="+filepath.Join(install.DebLibraries(k.root), "sasl2"))
	values := map[string]any{"Realm": Realm, "Port": port, "Modules": modules[0], "Dir": k.dir}
	for _, file := range []string{k.Conf, profile} {
		f := must.Get(os.Create(file))
		err := template.Must(template.ParseFS(configurations, filepath.Base(file))).Execute(f, values)
		must.Do(errors.Join(err, f.Close()))
	}
}

func (k *KDC) start(ctx context.Context, port int) {
	const patience = 20 * time.Second
	cmd := exec.Command(filepath.Join(k.root, "usr/sbin/krb5kdc"), "-n", "-r", Realm)
	cmd.Env = k.env
	k.process = server.Start("KDC", cmd, filepath.Join(k.dir, "output.log"))
	must.Await(ctx, patience, "the KDC answers", func() error {
		if !k.process.Running() {
			must.Failf("kdc: it ended:\n%s", k.process.Log())
		}
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

// Only returns the KDC as seen by a client that permits a single encryption type. Stop must not be
// called on the result.
func (k *KDC) Only(enctype string) *KDC {
	other := *k
	other.Conf = filepath.Join(k.dir, enctype+".conf")
	text := "[libdefaults]\n"
	for _, key := range []string{"permitted", "default_tgs", "default_tkt"} {
		text += "  " + key + "_enctypes = " + enctype + "\n"
	}
	other.env = append(slices.Clone(k.env), "KRB5_CONFIG="+other.Conf)
	must.Do(os.WriteFile(other.Conf, []byte(text+"include "+k.Conf+"\n"), 0o644))
	return &other
}

// Env returns the environment in which MIT's programs and libraries use this KDC.
func (k *KDC) Env() []string { return k.env }

// Python returns the directory with Python's module kerberos.
func (k *KDC) Python() string { return filepath.Join(k.root, "usr/lib/python3/dist-packages") }

// CompileWithSASL compiles a C program with Cyrus SASL.
func (k *KDC) CompileWithSASL(ctx context.Context, source string) (program string) {
	program = filepath.Join(k.dir, strings.TrimSuffix(filepath.Base(source), ".c"))
	libraries := install.DebLibraries(k.root)
	install.Output(ctx, "", "gcc", "-std=gnu11", "-Wall", "-Wextra", "-I"+filepath.Join(k.root, "usr/include"),
		"-o", program, source, "-L"+libraries, "-lsasl2", "-Wl,-rpath-link,"+libraries)
	return program
}

// Run runs a program of the KDC's packages and returns its output.
func (k *KDC) Run(ctx context.Context, program string, args ...string) string {
	cmd := exec.CommandContext(ctx, filepath.Join(k.root, program), args...)
	cmd.Env = k.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		must.Failf("kdc: %s %s: %w\n%s", program, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// Export adds principals with random keys and returns a keytab with them. A principal that exists
// gets new keys of the next version.
func (k *KDC) Export(ctx context.Context, keytab string, principals ...string) (file string) {
	file = filepath.Join(k.dir, keytab)
	for _, p := range principals {
		k.Run(ctx, "usr/sbin/kadmin.local", "-r", Realm, "-q", "addprinc -randkey "+p)
		out := k.Run(ctx, "usr/sbin/kadmin.local", "-r", Realm, "-q", "ktadd -k "+file+" "+p)
		if !strings.Contains(out, "added to keytab") {
			must.Failf("kdc: export %s: %s", p, out)
		}
	}
	return file
}

// Cache logs in with a keytab and returns a ticket cache.
func (k *KDC) Cache(ctx context.Context, name, keytab, principal string) (file string) {
	file = filepath.Join(k.dir, name)
	k.Run(ctx, "usr/bin/kinit", "-c", "FILE:"+file, "-k", "-t", keytab, principal)
	return file
}

// Stop ends the KDC and removes its files.
func (k *KDC) Stop() error {
	var err error
	if k.process != nil {
		err = k.process.Stop()
	}
	return errors.Join(err, os.RemoveAll(k.dir))
}
