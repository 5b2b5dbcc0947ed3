package server

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// WriteZooKeeperScript writes a zkServer.sh into dir that starts Apache ZooKeeper for
// "start-foreground FILE" as ZooKeeper's own script does: with SERVER_JVMFLAGS, and in the same
// process, so that a signal reaches the server. It installs ZooKeeper if necessary. version is
// Debian or Maven.
func WriteZooKeeperScript(ctx context.Context, version, dir string) error {
	classPath, err := zooKeeperClassPath(ctx, version)
	if err != nil {
		return err
	}
	logging, err := writeLogging(dir)
	if err != nil {
		return err
	}
	return writeScript(dir, fmt.Sprintf("java %s $SERVER_JVMFLAGS -Dlogback.configurationFile=%s -cp %s %s",
		strings.Join(quickJVM(), " "), quote(logging), quote(classPath), zooKeeperMain))
}

// WriteGozkdScript writes the same script for binary with additional flags.
func WriteGozkdScript(binary, dir string, flags ...string) error {
	command := quote(binary) + " serve"
	for _, f := range flags {
		command += " " + quote(f)
	}
	return writeScript(dir, command)
}

// writeScript writes a script that runs command followed by the script's second argument.
func writeScript(dir, command string) error {
	text := "#!/bin/sh\nexec " + command + " \"$2\"\n"
	if err := os.WriteFile(filepath.Join(dir, "zkServer.sh"), []byte(text), 0o755); err != nil {
		return fmt.Errorf("server: %w", err)
	}
	return nil
}

// quote quotes s for a shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
