package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// try uses artifacts.
func (u *user) try(out string) {
	u.output(out, "sha256sum", "--quiet", "-c", "SHA256SUMS")
	proxy := filepath.Join(out, "modules")
	version := strings.TrimSpace(string(must.Get(os.ReadFile(filepath.Join(proxy, root, "@v", "list")))))
	if os.Getuid() != 0 {
		must.Failf("packages and images are tried in directories of their own, by chroot: be root, or run make release-check")
	}
	u.tryPackage(one(out, "*_linux_"+runtime.GOARCH+".deb"), version[1:])
	image := one(out, "*_image_"+runtime.GOARCH+".tar")
	u.tryImage(image, version[1:])
	u.tryKits(out, version[1:])
	u.environment(proxy)
	u.tryCompose(image, version)
	u.checkUse(version)
}

func one(dir, pattern string) string {
	found := must.Get(filepath.Glob(filepath.Join(dir, pattern)))
	if len(found) != 1 {
		must.Failf("%s has %d files %s, want one", dir, len(found), pattern)
	}
	return found[0]
}

// chroot is a directory that programs take for the whole file system.
type chroot struct {
	*user
	dir string
	as  string   // the user and group of programs
	env []string // all of their environment
}

// command returns a program in the directory.
func (r *chroot) command(words ...string) *exec.Cmd {
	cmd := exec.CommandContext(r.ctx, "chroot", append([]string{"--userspec=" + r.as, r.dir}, words...)...)
	cmd.Env = r.env
	return cmd
}

// says runs a program that must succeed.
func (r *chroot) says(words ...string) string {
	out, err := r.command(words...).CombinedOutput()
	if err != nil {
		must.Failf("%q: %w\n%s", words, err, out)
	}
	return string(out)
}

// serve runs a server until use returns; SIGTERM must end it with status 0.
func (r *chroot) serve(words []string, use func()) {
	end := r.begin(words)
	end(must.Try(use))
}

// begin starts a server, which end ends. err is why.
func (r *chroot) begin(words []string) (end func(err error)) {
	var log bytes.Buffer
	cmd := r.command(words...)
	cmd.Stdout, cmd.Stderr = &log, &log
	must.Do(cmd.Start())
	return func(err error) {
		if err = errors.Join(err, cmd.Process.Signal(syscall.SIGTERM), cmd.Wait()); err != nil {
			must.Failf("%q: %w\n%s", words, err, log.Bytes())
		}
	}
}

// freePorts returns ports that nobody listens on.
func freePorts(n int) []string {
	ports := make([]string, n)
	for i := range ports {
		l := must.Get(net.Listen("tcp", "127.0.0.1:0"))
		defer must.Finally(l.Close)
		_, ports[i], _ = net.SplitHostPort(l.Addr().String())
	}
	return ports
}

// answers waits until the program gozkd in the directory writes and reads at the port.
func (r *chroot) answers(gozkd, port, version string) { r.answersAt(gozkd, "127.0.0.1:"+port, version) }

func (r *chroot) answersAt(gozkd, address, version string) {
	must.Await(r.ctx, time.Minute, "a server at "+address, func() error {
		return r.command(gozkd, "cli", "-server", address, "ls", "/").Run()
	})
	cli := func(words ...string) string {
		return r.says(append([]string{gozkd, "cli", "-server", address}, words...)...)
	}
	cli("create", "/tried", "yes")
	if got := cli("get", "/tried"); !strings.Contains(got, "yes") {
		must.Failf("%s: read %q, want yes", address, got)
	}
	cli("delete", "/tried")
	conn := must.Get(net.Dial("tcp", address))
	defer must.Finally(conn.Close)
	must.Get(conn.Write([]byte("srvr")))
	if srvr := string(must.Get(io.ReadAll(conn))); !strings.Contains(srvr, "-gozkd-"+version+"-") {
		must.Failf("%s: srvr does not name version %s:\n%s", address, version, srvr)
	}
}

// tryPackage installs a package into an empty directory and starts what its unit starts.
func (u *user) tryPackage(deb, version string) {
	dir := filepath.Join(u.dir, "installed")
	write(filepath.Join(dir, "var/lib/dpkg/status"), nil)
	write(filepath.Join(dir, "etc/passwd"), []byte("root:x:0:0::/root:/bin/sh\n"))
	write(filepath.Join(dir, "etc/group"), []byte("root:x:0:\n"))
	u.output(u.dir, "dpkg", "--root="+dir, "--force-script-chrootless", "--force-depends", "-i", deb)
	account := regexp.MustCompile(`(?m)^gozkd:x:(\d+):(\d+):`).FindStringSubmatch(string(must.Get(os.ReadFile(filepath.Join(dir, "etc/passwd")))))
	if account == nil {
		must.Failf("%s made no user gozkd", deb)
	}
	r := &chroot{user: u, dir: dir, as: account[1] + ":" + account[2], env: []string{"NOTIFY_SOCKET=/run/notify"}}
	for _, unit := range strings.Fields("sysinit basic shutdown multi-user timers network-online") { // what verify follows the unit to
		write(filepath.Join(dir, "usr/lib/systemd/system", unit+".target"), []byte("[Unit]\n"))
	}
	u.output(u.dir, "install", "-D", "/bin/kill", filepath.Join(dir, "bin/kill"))
	if warned := u.output(dir, "sh", "-c", "systemd-analyze verify --man=no --root=. gozkd.service gozkd-verify.timer 2>&1"); warned != "" {
		must.Failf("systemd-analyze verify: %s", warned)
	}
	u.output(u.dir, "install", "-d", "-o", account[1], "-g", account[2], filepath.Join(dir, "var/lib/gozkd"), filepath.Join(dir, "run")) // systemd's part

	complete := ". " + filepath.Join(dir, "usr/share/bash-completion/completions/gozkd") +
		"; COMP_WORDS=(gozkd top -inter); COMP_CWORD=2; _gozkd; COMP_WORDS=(gozkd mig); COMP_CWORD=1; old=$COMPREPLY; _gozkd; echo $old $COMPREPLY"
	if got := u.output(u.dir, "bash", "-c", complete); got != "-interval migrate" {
		must.Failf("bash completes to %q, want -interval migrate", got)
	}

	unit := string(must.Get(os.ReadFile(filepath.Join(dir, "usr/lib/systemd/system/gozkd.service"))))
	start := regexp.MustCompile(`(?m)^ExecStart=(.*)$`).FindStringSubmatch(unit)
	words, config, port := strings.Fields(start[1]), filepath.Join(dir, "etc/gozkd/zoo.cfg"), freePorts(1)[0]
	text := strings.Replace(string(must.Get(os.ReadFile(config))), "clientPort=2181", "admin.serverPort=0\nclientPort="+port, 1)
	must.Do(os.WriteFile(config, []byte(text), 0o644))
	told := must.Get(net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "run/notify"), Net: "unixgram"}))
	defer must.Finally(told.Close)
	must.Do(os.Chmod(filepath.Join(dir, "run/notify"), 0o777))
	r.serve(words, func() {
		must.Do(told.SetReadDeadline(time.Now().Add(time.Minute)))
		for message := make([]byte, 1000); !bytes.HasPrefix(message, []byte("READY=1\n")); {
			must.Get(told.Read(message)) // fails after a minute
		}
		r.answers(words[0], port, version)
		page, done := string(must.Get(os.ReadFile(filepath.Join(pages, "deb.md")))), 0
		for line := range strings.Lines(strings.ReplaceAll(page, ":2181", ":"+port)) {
			if command, ok := strings.CutPrefix(line, "    $ gozkd "); ok {
				r.says(strings.Fields(words[0] + " " + command)...)
				done++
			}
		}
		if done < 4 {
			must.Failf("deb.md has %d commands of gozkd", done)
		}
	})
	_, check, _ := strings.Cut(unit, "\nExecStartPre=-")
	check, _, _ = strings.Cut(check, "\n")
	if got := r.says(strings.Fields(check)...); !strings.Contains(got, "clientPort="+port+"\n") {
		must.Failf("ExecStartPre prints\n%s, want the port %s in it", got, port)
	}
	must.Do(os.Remove(config))
	var exit *exec.ExitError
	if err := r.command(words...).Run(); !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.Contains(unit, "\nRestartPreventExitStatus=2\n") {
		must.Failf("%q without zoo.cfg: %v; want exit status 2, after which the unit does not start it again", words, err)
	}
	fmt.Println(filepath.Base(deb) + ": installed, verified and served")
}

// unpackImage unpacks the only layer of an image.
func unpackImage(name, dir string) (c imageConfig) {
	files := make(map[string][]byte)
	for h, data := range untar(must.Get(os.ReadFile(name))) {
		files[h.Name] = data
	}
	var manifests []struct {
		Config string
		Layers []string
	}
	must.Do(json.Unmarshal(files["manifest.json"], &manifests))
	var config struct{ Config imageConfig }
	must.Do(json.Unmarshal(files[manifests[0].Config], &config))
	layer := must.Get(io.ReadAll(must.Get(gzip.NewReader(bytes.NewReader(files[manifests[0].Layers[0]])))))
	must.Do(os.Mkdir(dir, 0o755))
	for h, data := range untar(layer) {
		at := filepath.Join(dir, filepath.FromSlash(h.Name))
		switch h.Typeflag {
		case tar.TypeDir:
			must.Do(os.Mkdir(at, 0o755))
		case tar.TypeSymlink:
			must.Do(os.Symlink(h.Linkname, at))
		default:
			must.Do(os.WriteFile(at, data, os.FileMode(h.Mode)))
		}
		must.Do(os.Lchown(at, h.Uid, h.Gid))
	}
	return config.Config
}

func untar(data []byte) func(yield func(*tar.Header, []byte) bool) {
	return func(yield func(*tar.Header, []byte) bool) {
		r := tar.NewReader(bytes.NewReader(data))
		for {
			h, err := r.Next()
			if errors.Is(err, io.EOF) || !yield(h, must.Get(io.ReadAll(r))) {
				return
			}
			must.Do(err)
		}
	}
}

// container unpacks an image for a server with variables.
func (u *user) container(image, name string, variables ...string) (r *chroot, c imageConfig) {
	r = &chroot{user: u, dir: filepath.Join(u.dir, name)}
	c = unpackImage(image, r.dir)
	r.as, r.env = c.User, append(slices.Clone(c.Env), variables...)
	return r, c
}

// tryImage starts servers from an image with the variables of other images.
func (u *user) tryImage(image, version string) {
	p := freePorts(6)
	alone := func(name, port string, variables ...string) {
		r, c := u.container(image, name, append(variables, "ZOO_CFG_EXTRA=db.autocreate=false")...)
		r.says("/bin/gozkd", "init")
		r.serve(append(c.Entrypoint, c.Cmd...), func() {
			r.answers("/bin/gozkd", port, version)
			r.says(c.Healthcheck.Test[1:]...)
			if got := r.says("/bin/zkServer.sh", "status"); !strings.Contains(got, "Mode: standalone") {
				must.Failf("%s: zkServer.sh status prints %q", name, got)
			}
		})
	}
	alone("official", p[0], "ZOO_PORT="+p[0], "ZOO_MY_ID=1", "ZOO_SERVERS=server.1=127.0.0.1:"+p[1]+":"+p[2]+";"+p[0],
		"ZOO_STANDALONE_ENABLED=true", "ZOO_ADMINSERVER_ENABLED=false", "ZOO_4LW_COMMANDS_WHITELIST=srvr,ruok")
	alone("bitnami", p[3], "ZOO_PORT_NUMBER="+p[3], "ZOO_SERVER_ID=1", "ALLOW_ANONYMOUS_LOGIN=yes", "ZOO_SERVERS=127.0.0.1:"+p[4]+":"+p[5]+"::1",
		"ZOO_ENABLE_ADMIN_SERVER=no", "ZOO_4LW_COMMANDS_WHITELIST=srvr,ruok")
	fmt.Println(filepath.Base(image) + ": served alone, with the variables of both images")
}

// next is the version of the second artifact of a rolling change.
const next = "0.1.1-rc.1"

// withKazoo is a program of a user who has ZooKeeper's client for Python.
const withKazoo = `
import sys
from kazoo.client import KazooClient
zk = KazooClient(hosts=sys.argv[1])
zk.start()
zk.create("/kazoo/a", b"1", makepath=True, ephemeral=True)
with zk.Lock("/kazoo/lock"):
    zk.set("/kazoo/a", b"2")
print(zk.get("/kazoo/a")[0], zk.server_version())
zk.stop()
`

// tryCompose starts the three services of the official image's compose file. Each has an address of
// this machine instead of ports of its own, to which its servers are bound. Clients of Python use
// them. Then the servers get another version one by one, while a client writes.
func (u *user) tryCompose(image, version string) {
	network := fmt.Sprintf("127.%d.%d.", 20+rand.IntN(200), rand.IntN(250))
	var hosts, addresses, servers []string
	for i := range 3 {
		hosts = append(hosts, fmt.Sprintf("%s%d zoo%d\n", network, i+1, i+1))
		addresses = append(addresses, fmt.Sprintf("%s%d:2181", network, i+1))
		servers = append(servers, fmt.Sprintf("server.%d=zoo%[1]d:2888:3888;zoo%[1]d:2181", i+1))
	}
	all := strings.Join(addresses, ",")
	begin := func(name string, more ...string) (r *chroot, start func() (end func(error))) {
		r, c := u.container(image, name, append(more, "ZOO_SERVERS="+strings.Join(servers, " "), "ZOO_4LW_COMMANDS_WHITELIST=*")...)
		write(filepath.Join(r.dir, "etc/hosts"), []byte(strings.Join(hosts, "")))
		return r, func() func(error) { return r.begin(append(c.Entrypoint, c.Cmd...)) }
	}
	var zoo [3]*chroot
	var start [3]func() func(error)
	var end [3]func(error)
	for i := range zoo {
		name := fmt.Sprint("zoo", i+1)
		zoo[i], start[i] = begin(name, fmt.Sprint("ZOO_MY_ID=", i+1), "ZOO_ADMIN_SERVER_ADDRESS="+name,
			"ZOO_CFG_EXTRA=metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider metricsProvider.httpHost="+name)
		end[i] = start[i]()
	}
	of := [3]string{version[1:], version[1:], version[1:]}
	check := func() {
		for i, address := range addresses {
			zoo[i].answersAt("/bin/gozkd", address, of[i])
			metrics := u.output(u.dir, "curl", "-sS", strings.Replace(address, ":2181", ":7000/metrics", 1))
			if line := fmt.Sprintf("version=%q} 1\n", of[i]); !strings.Contains(metrics, line) {
				must.Failf("%s: gozkd_build_info is not of version %s", address, of[i])
			}
			top := regexp.MustCompile(`(?m)^.*` + strconv.Itoa(i+1) + `.*` + regexp.QuoteMeta(of[i]) + `.*$`).FindString(zoo[0].says("/bin/gozkd", "top", "--once", "-server", all))
			if top == "" {
				must.Failf("top does not show version %s of server %d", of[i], i+1)
			}
		}
	}
	check()

	u.output(u.dir, "python3", "-m", "venv", "venv")
	python := filepath.Join(u.dir, "venv/bin/python")
	u.output(u.dir, python, "-m", "pip", "install", "-q", "kazoo==2.11.0")
	if got := u.output(u.dir, python, "-c", withKazoo, all); !strings.HasPrefix(got, "b'2' (3, ") {
		must.Failf("kazoo prints %q", got)
	}

	program := *u
	program.env = append(slices.Clone(u.env), "CGO_ENABLED=0", "GOBIN="+filepath.Join(u.dir, next))
	program.output(u.dir, "go", "install", "-ldflags=-s -w -X "+root+"/internal/version.tag=v"+next, root+"/cmd/gozkd@"+version)
	newer := must.Get(os.ReadFile(filepath.Join(u.dir, next, "gozkd")))
	writer, _ := begin("writer")
	stop, stopped, written, unknown := make(chan struct{}), make(chan error), 0, 0
	go func() { // ends when stop is closed, or a write fails
		for {
			select {
			case <-stop:
				stopped <- nil
				return
			default:
			}
			err := must.Try(func() { writer.says("/bin/gozkd", "cli", "-server", all, "create", "-s", "/n") })
			switch {
			case err == nil:
				written++
			case strings.Contains(err.Error(), "ConnectionLoss") && unknown < len(zoo):
				unknown++ // the request came to a server that had just ended
			default:
				stopped <- err
				return
			}
		}
	}()
	for i := range zoo {
		end[i](nil)
		at := filepath.Join(zoo[i].dir, "bin/gozkd")
		must.Do(os.Remove(at))
		must.Do(os.WriteFile(at, newer, 0o755))
		of[i], end[i] = next, start[i]()
		check()
	}
	close(stop)
	must.Do(<-stopped)
	if got := strings.Count(writer.says("/bin/gozkd", "cli", "-server", all, "ls", "/"), "n0"); got < written || got > written+unknown || got == 0 {
		must.Failf("%d writes were answered during the change, %d not, and there are %d", written, unknown, got)
	}
	for i := range zoo {
		end[i](nil)
	}
	fmt.Printf("%s: three as in the compose file served kazoo, and became %s one by one during %d writes\n", filepath.Base(image), next, written)
}
