package server

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// SuperPassword is the password of the user super under Defaults.
const SuperPassword = "admin"

// Defaults returns the zoo.cfg of compatibility tests: short ticks, every kind of znode, every
// four-letter word, and a superuser. The caller owns the map.
func Defaults() map[string]string {
	return map[string]string{
		"tickTime":                                 "500",
		"minSessionTimeout":                        "500",
		"maxSessionTimeout":                        "60000",
		"maxClientCnxns":                           "0",
		"admin.enableServer":                       "false",
		"extendedTypesEnabled":                     "true",
		"4lw.commands.whitelist":                   "*",
		"znode.container.checkIntervalMs":          "500",
		"DigestAuthenticationProvider.superDigest": "super:xQJmxLMiHGwaqBvst5y6rkB6HQs=",
	}
}

// User is a user of DIGEST-MD5.
type User struct{ Name, Password, PasswordFile string }

// WithUser returns Defaults with SASL and a user, whose files it makes in dir.
func WithUser(dir string) (map[string]string, User) {
	u := User{Name: "alice", Password: "alice-secret", PasswordFile: filepath.Join(dir, "password")}
	jaas := filepath.Join(dir, "jaas.conf")
	text := fmt.Sprintf("Server {\n  org.apache.zookeeper.server.auth.DigestLoginModule required user_%s=%q;\n};\n", u.Name, u.Password)
	must.Do(errors.Join(os.WriteFile(jaas, []byte(text), 0o600), os.WriteFile(u.PasswordFile, []byte(u.Password+"\n"), 0o600)))
	keys := Defaults()
	keys["java.security.auth.login.config"] = jaas
	keys["authProvider.1"] = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider"
	return keys, u
}

// Options configure a server.
type Options struct {
	// DataDir is the data directory. The caller owns it, so a second server can start on the data
	// of the first. Empty means a temporary directory that is removed with the process.
	DataDir string
	// Memory keeps everything in memory; ZooKeeper ignores it.
	Memory bool
	// Port is the client port on 127.0.0.1. Zero means any free port.
	Port int
	// Keys are lines of zoo.cfg; nil means Defaults().
	Keys map[string]string
	// TLS, if not nil, opens a second client port that requires TLS with certificates on both
	// sides: Process.SecureAddr. Format is PEM, PKCS12 or JKS.
	TLS    *Stores
	Format string
	// JVMFlags are ZooKeeper's java flags. nil means a quick start and a small heap: right for
	// tests, unfair in a benchmark.
	JVMFlags []string
	// Wrapper is a command that replaces itself by the command after its arguments, such as
	// "prlimit --nofile=256". Empty: none.
	Wrapper []string
	// AuditLog is the file of the audit log in ZooKeeper's format, which the key audit.enable turns
	// on. Empty: there is none.
	AuditLog string
}

// wrapped returns the command of a server, in the wrapper, if any.
func wrapped(wrapper, line []string) *exec.Cmd {
	all := slices.Concat(wrapper, line)
	return exec.Command(all[0], all[1:]...)
}

// in fills in defaults. The data is in work unless the caller named a directory.
func (o Options) in(work string) Options {
	if o.Keys == nil {
		o.Keys = Defaults()
	}
	o.Keys = maps.Clone(o.Keys)
	if o.DataDir == "" {
		o.DataDir = filepath.Join(work, "data")
	}
	return o
}

// secure adds the keys of the secure port, and returns its address, if the port is wanted.
func (o *Options) secure() (addr string) {
	if o.TLS == nil {
		return ""
	}
	port := strconv.Itoa(must.Get(FreePorts(1))[0])
	maps.Copy(o.Keys, o.TLS.Keys("ssl.", "server", o.Format))
	o.Keys["secureClientPort"], o.Keys["secureClientPortAddress"] = port, "127.0.0.1"
	o.Keys["serverCnxnFactory"] = "org.apache.zookeeper.server.NettyServerCnxnFactory"
	return net.JoinHostPort("127.0.0.1", port)
}

// writeConfig writes zoo.cfg into dir, sorted by key, and returns its path.
func writeConfig(dir string, keys map[string]string) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		fmt.Fprintf(&b, "%s=%s\n", k, keys[k])
	}
	path := filepath.Join(dir, "zoo.cfg")
	must.Do(os.WriteFile(path, []byte(b.String()), 0o644))
	return path
}

// FreePorts returns n different ports that were free a moment ago on each of the addresses, or on
// 127.0.0.1 without any. They are below those that systems use for outgoing connections: a stopped
// member must find its ports free when it returns.
func FreePorts(n int, ips ...string) (ports []int, err error) {
	const first, last, attempts = 16384, 32767, 1000
	if ips == nil {
		ips = []string{"127.0.0.1"}
	}
	var held []net.Listener
	defer func() {
		for _, l := range held {
			err = errors.Join(err, l.Close())
		}
	}()
	for range attempts {
		if len(ports) == n {
			return ports, nil
		}
		port, free := first+rand.IntN(last-first+1), true
		for _, ip := range ips {
			l, err := net.Listen("tcp", net.JoinHostPort(ip, strconv.Itoa(port)))
			if free = err == nil; !free {
				break
			}
			held = append(held, l)
		}
		if free {
			ports = append(ports, port)
		}
	}
	return nil, fmt.Errorf("server: found only %d free ports of %d", len(ports), n)
}
