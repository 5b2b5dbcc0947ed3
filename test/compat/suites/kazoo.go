package main

import (
	"context"
	_ "embed" // kazoo/java.sh and kazoo/ourkit.py
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/install"
)

var (
	// javaShim stands before java in PATH. kazoo's harness starts its servers with it.
	//go:embed kazoo/java.sh
	javaShim []byte
	// kazooKit is a plugin of pytest that puts our kit in the place of kazoo's harness.
	//go:embed kazoo/ourkit.py
	kazooKit []byte
)

// installKazoo prepares kazoo's own tests, which its package contains. Three servers are started
// for each file of tests.
func installKazoo(ctx context.Context, root string) installed {
	requirements := filepath.Join(root, "test", "compat", "suites", "kazoo", "requirements.txt")
	python := install.Python(ctx, root, "kazoo-tests", requirements)
	tests := must.Get(filepath.Glob(filepath.Join(root, ".cache", "compat", "kazoo-tests", "lib", "python*", "site-packages", "kazoo", "tests", "test_*.py")))
	classPath := install.MavenZooKeeper(ctx, root)
	version := regexp.MustCompile(`kazoo==(\S+)`).FindSubmatch(must.Get(os.ReadFile(requirements)))
	in := installed{version: string(version[1])}
	files := make(map[string]string)
	for _, t := range tests {
		part := strings.TrimSuffix(filepath.Base(t), ".py")
		files[part] = t
		in.parts = append(in.parts, part)
		if part == "test_sasl" { // once with, once without users
			in.parts = append(in.parts, "test_sasl-digest")
			files["test_sasl-digest"] = t
		}
	}
	in.quick = []string{"test_barrier", "test_counter", "test_watchers"}
	in.test = func(class, name string) string { return strings.TrimPrefix(class, "kazoo.tests.") + "#" + name }
	in.command = func(ctx context.Context, t target, part, dir string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "log_cli=false",
			"--timeout", "120", "--junitxml", filepath.Join(dir, "report.xml"), files[part])
		cmd.Env = append(os.Environ(), "TMPDIR="+dir, "ZOOKEEPER_VERSION="+install.MavenVersion(root, "zookeeper"),
			fmt.Sprintf("ZOOKEEPER_PORT_OFFSET=%d", kazooPorts()), "ZOOKEEPER_CLASSPATH="+classPath)
		if part == "test_sasl-digest" {
			cmd.Env = append(cmd.Env, "ZOOKEEPER_JAAS_AUTH=digest")
		}
		switch {
		case t.kit != "":
			// All that changes is what "from kazoo.testing import" means, also in files from which
			// others inherit tests.
			must.Do(os.WriteFile(filepath.Join(dir, "ourkit.py"), kazooKit, 0o644))
			cmd.Args = append(cmd.Args, "-p", "ourkit")
			cmd.Env = append(cmd.Env, "GOZKD_TESTKIT="+t.kit, "ZOOKEEPER_CLASSPATH=", // not for kazoo's harness
				"PYTHONPATH="+dir+string(filepath.ListSeparator)+filepath.Join(root, "testkit", "python"))
		case !t.own:
			must.Do(os.WriteFile(filepath.Join(dir, "java"), javaShim, 0o755))
			cmd.Env = append(cmd.Env, "SUITES_BIN="+t.bin, "PATH="+dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
		}
		return cmd
	}
	return in
}

var kazooCalls atomic.Int32

// kazooPorts returns the first of 25 ports that were free a moment ago: three servers with 5 each,
// at distances of 10.
func kazooPorts() int {
	const first, distance, places, ports = 24000, 40, 150, 25
	for range places {
		base := first + int(kazooCalls.Add(1)+int32(os.Getpid()))%places*distance
		free := true
		for port := base; port < base+ports && free; port++ {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
			if free = err == nil; free {
				must.Do(l.Close())
			}
		}
		if free {
			return base
		}
	}
	must.Failf("found no %d free ports in a row", ports)
	return 0
}
