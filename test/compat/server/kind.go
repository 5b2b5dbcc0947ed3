package server

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/install"
)

// Names of kinds of servers. That of a release of ZooKeeper is ZooKeeper and the release, such as
// 3.4.14.
const (
	Gozkd       = "gozkd"
	ZooKeeper   = "zookeeper-"
	ZooKeeper38 = ZooKeeper + Debian
	ZooKeeper39 = ZooKeeper + Maven
	Newest      = "zookeeper" // the ZooKeeper that gozkd must equal, where there is one
)

// Kind is a program that can be started as a server or as an ensemble.
type Kind struct {
	Name string
	// JVMFlags are those of starts whose options have none.
	JVMFlags []string

	binary  string // of gozkd
	version string // of ZooKeeper; empty: gozkd
}

// KindNamed returns the kind with this name. binary is the gozkd to start; if it is empty, gozkd is
// built into dir, with these flags. An error ends the work (see package must).
func KindNamed(ctx context.Context, name, binary, dir string, flags ...string) Kind {
	k := Kind{Name: name, binary: binary}
	switch version, found := strings.CutPrefix(name, ZooKeeper); {
	case name == Gozkd && binary == "":
		k.binary = build(ctx, install.Root(ctx), dir, "gozkd", flags...)
	case name == Gozkd:
	case name == Newest:
		k.version = Maven
	case found && (version == Debian || version == Maven || strings.Count(version, ".") == 2):
		k.version = version
	default:
		must.Failf("no server %q: know %s, %s, %s, and %s", name, ZooKeeper38, ZooKeeper39, Newest, Gozkd)
	}
	return k
}

// Kinds returns the kinds that a comma-separated list names, or all, as KindNamed does.
func Kinds(ctx context.Context, list, binary, dir string, flags ...string) (kinds []Kind) {
	if list == "all" {
		list = ZooKeeper38 + "," + ZooKeeper39 + "," + Gozkd
	}
	for name := range strings.SplitSeq(list, ",") {
		kinds = append(kinds, KindNamed(ctx, name, binary, dir, flags...))
	}
	return kinds
}

// Twins returns the ZooKeeper that gozkd must equal, and gozkd, as KindNamed does.
func Twins(ctx context.Context, binary, dir string) [2]Kind {
	return [2]Kind{KindNamed(ctx, ZooKeeper39, "", dir), KindNamed(ctx, Gozkd, binary, dir)}
}

// Binary returns the gozkd that the kind starts; "" for ZooKeeper.
func (k *Kind) Binary() string { return k.binary }

// product is the name for people.
func (k *Kind) product() string {
	if k.version == "" {
		return "gozkd"
	}
	return "ZooKeeper"
}

// Command returns the command line of a server without the path of zoo.cfg, which follows, and
// writes the other files that it needs into dir. It installs ZooKeeper if necessary.
func (k *Kind) Command(ctx context.Context, dir string, opts Options) []string {
	if k.version != "" {
		if opts.JVMFlags == nil {
			opts.JVMFlags = k.JVMFlags
		}
		return zooKeeperCommand(ctx, k.version, dir, opts)
	}
	line := []string{k.binary, "serve"}
	if opts.Memory {
		line = append(line, "--memory")
	}
	return line
}

// configured writes zoo.cfg, too, and returns the whole command line. It changes the keys.
func (k *Kind) configured(ctx context.Context, dir string, opts Options) []string {
	line := k.Command(ctx, dir, opts)
	if k.version == "" && opts.Memory {
		delete(opts.Keys, "dataDir")
	}
	if k.version == "" && opts.AuditLog != "" {
		opts.Keys["gozkd.audit.format"], opts.Keys["gozkd.audit.file"] = "zookeeper", opts.AuditLog
	}
	return append(line, writeConfig(dir, opts.Keys))
}

// WriteScript writes a zkServer.sh into dir that starts the server for "start-foreground FILE" as
// ZooKeeper's own script does: in the same process, so that a signal reaches the server, and for
// ZooKeeper with SERVER_JVMFLAGS.
func (k *Kind) WriteScript(ctx context.Context, dir string) {
	var words []string
	for _, w := range k.Command(ctx, dir, Options{}) {
		words = append(words, "'"+strings.ReplaceAll(w, "'", `'\''`)+"'")
	}
	if k.version != "" {
		words[len(words)-1] = "$SERVER_JVMFLAGS " + words[len(words)-1]
	}
	text := "#!/bin/sh\nexec " + strings.Join(words, " ") + " \"$2\"\n"
	must.Do(os.WriteFile(filepath.Join(dir, "zkServer.sh"), []byte(text), 0o755))
}
