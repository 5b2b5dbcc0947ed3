package main

import (
	"context"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/gozkd/gozkd/test/compat/install"
	"github.com/gozkd/gozkd/test/compat/server"
)

// javaProgram is a program from Maven and our client of it.
type javaProgram struct {
	version, classPath string
	flags              []string // of the JVM
}

// installMaven resolves NAME/pom.xml and compiles the Java sources beside it.
func installMaven(ctx context.Context, root, name, artifact string) javaProgram {
	dir := filepath.Join(root, "test", "compat", "programs", name)
	pom := filepath.Join(dir, "pom.xml")
	libs := install.Maven(ctx, root, "program-"+name, pom)
	classes := install.Javac(ctx, root, "program-"+name, libs, dir)
	return javaProgram{version: install.PomVersion(pom, artifact), classPath: classes + string(filepath.ListSeparator) + libs}
}

// command returns the command that runs a class.
func (j javaProgram) command(w *world, class string, args ...string) *exec.Cmd {
	return exec.Command("java", slices.Concat([]string{"-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-Dlogback.configurationFile=" + server.WriteLogging(w.dir, ""), "-cp", j.classPath}, j.flags, []string{class}, args)...)
}
