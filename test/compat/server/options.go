package server

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	// JVMFlags are ZooKeeper's java flags. nil means a quick start and a small heap: right for
	// tests, unfair in a benchmark.
	JVMFlags []string
}

// prepare fills in defaults. work is a new temporary directory for the configuration, the log, and
// the data if the caller named no directory.
func (o Options) prepare() (opts Options, work string, err error) {
	if o.Keys == nil {
		o.Keys = Defaults()
	}
	o.Keys = maps.Clone(o.Keys)
	work, err = os.MkdirTemp("", "gozkd-compat-")
	if err != nil {
		return o, "", fmt.Errorf("server: %w", err)
	}
	if o.DataDir == "" {
		o.DataDir = filepath.Join(work, "data")
	}
	return o, work, nil
}

// writeConfig writes zoo.cfg into dir, sorted by key, and returns its path.
func writeConfig(dir string, keys map[string]string) (string, error) {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		fmt.Fprintf(&b, "%s=%s\n", k, keys[k])
	}
	path := filepath.Join(dir, "zoo.cfg")
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		return "", fmt.Errorf("server: %w", err)
	}
	return path, nil
}
