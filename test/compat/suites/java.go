package main

import (
	"archive/zip"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/install"
	"github.com/gozkd/gozkd/test/compat/server"
)

// portRanges is more than the number of classes that run at once.
const portRanges = 16

// installZooKeeper prepares ZooKeeper's own tests. Our classes start the server of a test, or the
// members of its ensemble, as processes, where the tests would start them in their JVM.
func installZooKeeper(ctx context.Context, root string) installed {
	data := testData(ctx, root)
	in := installJava(ctx, root, "src-zookeeper", func(jar string) bool {
		return strings.HasPrefix(jar, "zookeeper-") && strings.HasSuffix(jar, "-tests.jar")
	})
	var started atomic.Int32
	command := in.command
	in.command = func(ctx context.Context, t target, part, dir string) *exec.Cmd {
		cmd := command(ctx, t, part, dir)
		// PortAssignment gives each of these JVMs a range of ports.
		cmd.Args = slices.Insert(cmd.Args, 1, "-Dtest.data.dir="+data, fmt.Sprintf("-Dtest.junit.threads=%d", portRanges),
			fmt.Sprintf("-Dzookeeper.junit.threadid=%d", 1+started.Add(1)%portRanges))
		return cmd
	}
	in.version = install.MavenVersion(root, "zookeeper")
	in.quick = []string{"org.apache.zookeeper.test.ChrootTest", "org.apache.zookeeper.test.WatcherFuncTest", "org.apache.zookeeper.test.PersistentRecursiveWatcherTest"}
	return in
}

// testData makes the key stores of ZooKeeper's tests, which are not in the published jar, and
// returns the directory that their property test.data.dir names.
func testData(ctx context.Context, root string) string {
	data := filepath.Join(root, ".cache", "compat", "suites-data")
	ssl := filepath.Join(data, "ssl")
	if _, err := os.Stat(filepath.Join(ssl, "testTrustStore.jks")); err == nil { // made last
		return data
	}
	must.Do(os.RemoveAll(ssl))
	must.Do(os.MkdirAll(ssl, 0o755))
	keytool := func(args ...string) {
		install.Output(ctx, ssl, "keytool", append(args, "-storetype", "JKS", "-storepass", "testpass", "-alias", "key")...)
	}
	for _, store := range []string{"testKeyStore.jks", "testUntrustedKeyStore.jks"} {
		keytool("-genkeypair", "-keystore", store, "-keypass", "testpass", "-keyalg", "EC", "-groupname", "secp256r1",
			"-validity", "3650", "-dname", "CN=localhost", "-ext", "san=dns:localhost,ip:127.0.0.1")
	}
	keytool("-exportcert", "-keystore", "testKeyStore.jks", "-file", "test.crt")
	keytool("-importcert", "-noprompt", "-keystore", "testTrustStore.jks", "-file", "test.crt")
	return data
}

// installCurator prepares the tests of Curator's client, framework and recipes.
func installCurator(ctx context.Context, root string) installed {
	in := installJava(ctx, root, "src-curator", func(jar string) bool {
		return strings.HasPrefix(jar, "curator-") && strings.HasSuffix(jar, "-tests.jar")
	})
	in.version = install.MavenVersion(root, "curator-recipes")
	command := in.command
	in.command = func(ctx context.Context, t target, part, dir string) *exec.Cmd {
		cmd := command(ctx, t, part, dir)
		if t.kit != "" {
			classes := javaKit(ctx, root)
			at := slices.Index(cmd.Args, "-cp") + 1
			cmd.Args[at] = classes + string(filepath.ListSeparator) + cmd.Args[at]
			cmd.Env = append(cmd.Env, "GOZKD_TESTKIT="+t.kit)
		}
		return cmd
	}
	in.quick = []string{"org.apache.curator.framework.imps.TestTransactionsNew",
		"org.apache.curator.framework.recipes.barriers.TestDistributedDoubleBarrier"}
	return in
}

// javaKit compiles our test kit under the names of Curator's package, which compiled tests use, and
// returns the directory of the classes.
func javaKit(ctx context.Context, root string) (classes string) {
	sources := filepath.Join(root, "testkit", "java", "src", "main", "java", "com", "github", "gozkd", "testkit")
	renamed := filepath.Join(root, ".cache", "compat", "suites-kit", "src")
	must.Do(os.MkdirAll(renamed, 0o755))
	for _, file := range must.Get(filepath.Glob(filepath.Join(sources, "*.java"))) {
		text := strings.NewReplacer("package com.github.gozkd.testkit;", "package org.apache.curator.test;",
			"findConnectionInstance(Object ", "findConnectionInstance(org.apache.zookeeper.ZooKeeper ",
		).Replace(string(must.Get(os.ReadFile(file))))
		to := filepath.Join(renamed, filepath.Base(file))
		if before, err := os.ReadFile(to); err != nil || string(before) != text {
			must.Do(os.WriteFile(to, []byte(text), 0o644))
		}
	}
	libs := install.Maven(ctx, root, "suites", filepath.Join(root, "test", "compat", "suites", "java", "pom.xml"))
	return install.Javac(ctx, root, "suites-kit", libs, renamed)
}

// installJava prepares the tests in the jars that isTests names. shims has our classes.
func installJava(ctx context.Context, root, shims string, isTests func(jar string) bool) installed {
	java := filepath.Join(root, "test", "compat", "suites", "java")
	libs := install.Maven(ctx, root, "suites", filepath.Join(java, "pom.xml"))
	classes := install.Javac(ctx, root, "suites-"+shims, libs, filepath.Join(java, "src"), filepath.Join(java, shims))
	var in installed
	for _, jar := range filepath.SplitList(libs) {
		if isTests(filepath.Base(jar)) {
			in.parts = append(in.parts, testClasses(jar)...)
		}
	}
	slices.Sort(in.parts)
	in.command = func(ctx context.Context, t target, part, dir string) *exec.Cmd {
		logging := server.WriteLogging(dir, "")
		must.Do(os.Mkdir(filepath.Join(dir, "tmp"), 0o755))
		classPath := libs
		if !t.own {
			classPath = classes + string(filepath.ListSeparator) + libs
		}
		// As ZooKeeper's and Curator's builds run them.
		cmd := exec.CommandContext(ctx, "java", "-Xmx512m", "-XX:+UseSerialGC", "-Djava.io.tmpdir="+filepath.Join(dir, "tmp"),
			"-Dbuild.test.dir="+filepath.Join(dir, "build"), "-Dlogback.configurationFile="+logging,
			"-Dzookeeper.DigestAuthenticationProvider.superDigest=super:D/InIHSb7yEEbrWz8b9l71RjZJU=",
			"-cp", classPath, "org.junit.platform.console.ConsoleLauncher", "execute", "--disable-banner", "--details=none",
			"--reports-dir="+dir, "--config=junit.jupiter.execution.timeout.default=180s", "--select-class="+part)
		cmd.Env = append(os.Environ(), "SUITES_BIN="+t.bin)
		return cmd
	}
	return in
}

// testClasses returns the classes in a jar that JUnit's conventions name.
func testClasses(jar string) []string {
	r := must.Get(zip.OpenReader(jar))
	defer must.Finally(r.Close)
	var list []string
	for _, f := range r.File {
		class, ok := strings.CutSuffix(f.Name, ".class")
		name := path.Base(class)
		if ok && !strings.Contains(name, "$") && (strings.HasSuffix(name, "Test") || strings.HasPrefix(name, "Test") || strings.HasSuffix(name, "Tests")) {
			list = append(list, strings.ReplaceAll(class, "/", "."))
		}
	}
	return list
}
