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

// Defaults returns the keys of zoo.cfg that compatibility tests run with: short ticks, every node kind, every
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

// Options say how to start a server.
type Options struct {
	// DataDir is where the server keeps its data. The caller owns it, so a second server can be started on what
	// the first left. Empty means a temporary directory that goes away with the process.
	DataDir string
	// Memory keeps everything in memory. Only gozkd can: ZooKeeper ignores it.
	Memory bool
	// Port is the client port on 127.0.0.1. Zero means any free port.
	Port int
	// Keys are lines of zoo.cfg; nil means Defaults().
	Keys map[string]string
	// JVMFlags are given to ZooKeeper's java. nil means flags for a quick start and a small heap: right for tests,
	// unfair in a benchmark.
	JVMFlags []string
}

// prepare fills in what is empty. work is a new temporary directory, for the configuration, the log, and the data if
// the caller named no place for it.
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

// writeConfig writes zoo.cfg into dir, keys in order, and returns its path.
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
