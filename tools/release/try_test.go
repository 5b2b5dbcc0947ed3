package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
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
	u.tryImage(one(out, "*_image_"+runtime.GOARCH+".tar"), version[1:])
	u.environment(proxy)
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
	var log bytes.Buffer
	cmd := r.command(words...)
	cmd.Stdout, cmd.Stderr = &log, &log
	must.Do(cmd.Start())
	err := must.Try(use)
	err = errors.Join(err, cmd.Process.Signal(syscall.SIGTERM), cmd.Wait())
	if err != nil {
		must.Failf("%q: %w\n%s", words, err, log.Bytes())
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
func (r *chroot) answers(gozkd, port, version string) {
	must.Await(r.ctx, time.Minute, "a server on port "+port, func() error {
		return r.command(gozkd, "cli", "-server", "127.0.0.1:"+port, "ls", "/").Run()
	})
	r.says(gozkd, "cli", "-server", "127.0.0.1:"+port, "create", "/tried-"+port, "yes")
	if got := r.says(gozkd, "cli", "-server", "127.0.0.1:"+port, "get", "/tried-"+port); !strings.Contains(got, "yes") {
		must.Failf("port %s: read %q, want yes", port, got)
	}
	conn := must.Get(net.Dial("tcp", "127.0.0.1:"+port))
	defer must.Finally(conn.Close)
	must.Get(conn.Write([]byte("srvr")))
	if srvr := string(must.Get(io.ReadAll(conn))); !strings.Contains(srvr, "-gozkd-"+version+"-") {
		must.Failf("port %s: srvr does not name version %s:\n%s", port, version, srvr)
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
	p := freePorts(15)
	alone := func(name, port string, variables ...string) {
		r, c := u.container(image, name, variables...)
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

	servers := ""
	for i := range 3 {
		servers += fmt.Sprintf("server.%d=127.0.0.1:%s:%s;%s ", i+1, p[6+3*i], p[7+3*i], p[8+3*i])
	}
	use := func() {
		for i := range 3 {
			r := &chroot{user: u, dir: filepath.Join(u.dir, fmt.Sprint("zoo", i+1)), as: "1000:1000"}
			r.answers("/bin/gozkd", p[8+3*i], version)
		}
	}
	for i := range 3 {
		r, c := u.container(image, fmt.Sprint("zoo", i+1), "ZOO_MY_ID="+fmt.Sprint(i+1), "ZOO_SERVERS="+servers,
			"ZOO_ADMINSERVER_ENABLED=false", "ZOO_4LW_COMMANDS_WHITELIST=srvr,ruok,mntr", "ZOO_CFG_EXTRA=db.autocreate=false")
		r.says("/bin/gozkd", "init")
		inner := use
		use = func() { r.serve(append(c.Entrypoint, c.Cmd...), inner) }
	}
	use()
	fmt.Println(filepath.Base(image) + ": served alone and as three, with the variables of both images")
}
