package mirror

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/clientflags"
	"github.com/gozkd/gozkd/internal/subtree"
	"github.com/gozkd/gozkd/proto"
)

const usage = `usage: gozkd mirror --from HOST:PORT,... --to HOST:PORT,... [PATH] [flags]

Makes the subtree PATH (default: /) of the target equal to that of the source, over client connections,
and follows the source until it is interrupted: data, ACLs, and the numbers of sequential znodes. The
source is only read. It can be any server that ZooKeeper clients can use.

Not carried: sessions, ephemerals (left out), zxids, versions and times. gozkd migrate and gozkd import
carry them. Containers and TTL znodes stay such if the source is gozkd with the word kind in its
4lw.commands.whitelist.

Clients must not write to PATH in the target meanwhile: what they write is undone.

flags:
  --from HOST:PORT,...  the client ports of the source; may end in a path (HOST:PORT/app), which is then /
  --to HOST:PORT,...    the same of the target
  --overwrite           the target may lose znodes, data and ACLs that differ. Without the flag mirror
                        lists them and stops. A mirror that is started again needs the flag
  --once                end when both are equal. For the cut-over, when the writers have stopped
  --interval DURATION   how often to compare the whole subtrees (1m): so long can a new ACL take, and any
                        change if the source has no persistent watches (ZooKeeper before 3.6)
  --counters N          move sequence counters forward by N creations at most in a comparison (100000): the
                        only way is to create and delete a znode that often
  --no-acl              copy no ACLs: what is created can be changed by everybody
  --from-auth-file FILE, --to-auth-file FILE
                        a file with a credential, such as digest super:PASSWORD
  --from-configuration FILE, --to-configuration FILE
                        the properties of ZooKeeper's client, for TLS and SASL
`

// side holds the flags of the source or the target.
type side struct {
	connect, authFile, configuration string
}

// Main runs `gozkd mirror`.
func Main(ctx context.Context, args []string, env cli.Env) int {
	c := cli.Command{Env: env, Name: "mirror", Usage: usage}
	f := &follower{line: c.Line, path: "/"}
	var from, to side
	flags := flag.NewFlagSet(c.Name, flag.ContinueOnError)
	from.register(flags, "from")
	to.register(flags, "to")
	flags.BoolVar(&f.overwrite, "overwrite", false, "")
	flags.BoolVar(&f.once, "once", false, "")
	flags.DurationVar(&f.interval, "interval", time.Minute, "")
	flags.Int64Var(&f.creations, "counters", 100_000, "")
	flags.BoolVar(&f.withoutACL, "no-acl", false, "")
	check := func(words []string) (err error) {
		if len(words) > 0 {
			f.path = words[0]
		}
		if err = f.check(words, &from, &to); err == nil {
			f.from, err = from.config("--from", env)
		}
		if err == nil {
			f.to, err = to.config("--to", env)
		}
		if err == nil {
			err = f.checkApart()
		}
		return err
	}
	return c.Do(flags, args, check, func([]string) error {
		f.changes = newChanges(f.path)
		return f.run(ctx)
	})
}

func (s *side) register(flags *flag.FlagSet, name string) {
	flags.StringVar(&s.connect, name, "", "")
	flags.StringVar(&s.authFile, name+"-auth-file", "", "")
	flags.StringVar(&s.configuration, name+"-configuration", "", "")
}

func (f *follower) check(words []string, from, to *side) error {
	switch {
	case len(words) > 1:
		return fmt.Errorf("%s: name one PATH", words[1])
	case from.connect == "" || to.connect == "":
		return errors.New("--from and --to are both needed: name the client ports of the source and of the target")
	case f.interval <= 0:
		return errors.New("--interval must be above 0")
	case subtree.Within(f.path, "/zookeeper"):
		return errors.New("/zookeeper belongs to the ensemble and is not mirrored: name another subtree")
	}
	if err := proto.ValidatePath(f.path); err != nil {
		return fmt.Errorf("%q: %w", f.path, err)
	}
	return nil
}

// config returns how to connect to the side that a flag names.
func (s *side) config(name string, env cli.Env) (cfg endpoint, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		}
	}()
	if cfg.Servers, cfg.Chroot, err = client.ParseServers(s.connect); err != nil {
		return cfg, err
	}
	if cfg.Auths, err = clientflags.ReadAuthFile(s.authFile); err != nil {
		return cfg, err
	}
	security, err := (&clientflags.Flags{Configuration: s.configuration}).Resolve(env)
	if err != nil {
		return cfg, err
	}
	cfg.security = security
	security.Configure(&cfg.Config)
	return cfg, nil
}

// checkApart refuses subtrees of the same servers that overlap: such a copy never ends.
func (f *follower) checkApart() error {
	from, to := subtree.Join(f.from.Chroot, f.path), subtree.Join(f.to.Chroot, f.path)
	same := slices.ContainsFunc(f.from.Servers, func(a string) bool {
		return slices.ContainsFunc(f.to.Servers, func(b string) bool { return strings.EqualFold(a, b) })
	})
	if same && (subtree.Within(from, to) || subtree.Within(to, from)) {
		return fmt.Errorf("--from and --to name the same servers, and %s and %s overlap", subtree.Join("/", from), subtree.Join("/", to))
	}
	return nil
}
