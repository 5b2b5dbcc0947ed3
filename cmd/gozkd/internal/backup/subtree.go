package backup

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/clientflags"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/printable"
	"github.com/gozkd/gozkd/internal/subtree"
	"github.com/gozkd/gozkd/proto"
)

const subtreeUsage = `usage: gozkd restore SOURCE --subtree PATH --to HOST:PORT,... [--at MOMENT] [--as PATH] [--dry-run]

Makes a subtree of a running ensemble, of gozkd or ZooKeeper, equal to an earlier state of it. Shows the
changes and asks before it makes them. If somebody else changes a znode meanwhile, restore stops there;
run it again to continue. Ephemeral znodes are neither restored nor deleted. A znode that exists keeps
its kind (persistent, container, TTL).

SOURCE is an archive, a backup or a data directory, as for gozkd restore --help.

flags:
  --subtree PATH      the znode in SOURCE, with all znodes below it
  --to HOST:PORT,...  the client ports of the ensemble
  --as PATH           the place of the subtree in the ensemble; its parent must exist. Default: PATH
  --at MOMENT         as for gozkd restore
  --ensemble-id ID, --from SOURCE, --log-dir DIR
                      as for gozkd restore
  --dry-run           show all changes, and make none
  --yes               do not ask
  --counters N        move sequence counters forward by N creations at most (100000): the only way is to
                      create and delete a znode that often
  --auth-file FILE    a file with a credential, such as digest super:PASSWORD
` + clientflags.Usage

// maxShown bounds the paths of each kind that are shown, except with --dry-run.
const maxShown = 20

// wantsSubtree reports whether a command line of restore has the flag --subtree.
func wantsSubtree(args []string) bool {
	return slices.ContainsFunc(args, func(a string) bool {
		name, _, _ := strings.Cut(a, "=")
		return name == "--subtree" || name == "-subtree"
	})
}

// subtreeRestore is a run of `gozkd restore --subtree`.
type subtreeRestore struct {
	*command
	moment       moment
	path, as, to string
	dryRun, yes  bool
	counters     int64
	authFile     string
	secure       clientflags.Flags
	security     *clientflags.Security
	config       client.Config // of a client of to
	destination  string
}

func restoreSubtree(ctx context.Context, c *command, args []string) int {
	c.Usage = subtreeUsage
	r := &subtreeRestore{command: c}
	flags := flag.NewFlagSet(c.Name, flag.ContinueOnError)
	r.moment.register(flags)
	flags.StringVar(&r.path, "subtree", "", "")
	flags.StringVar(&r.as, "as", "", "")
	flags.StringVar(&r.to, "to", "", "")
	flags.BoolVar(&r.dryRun, "dry-run", false, "")
	flags.BoolVar(&r.yes, "yes", false, "")
	flags.Int64Var(&r.counters, "counters", 100_000, "")
	flags.StringVar(&r.authFile, "auth-file", "", "")
	r.secure.Register(flags)
	return c.Do(flags, args, r.check, func([]string) (err error) {
		if r.security, err = r.secure.Resolve(c.Env); err == nil {
			r.config.Auths, err = clientflags.ReadAuthFile(r.authFile)
		}
		if err != nil {
			return err
		}
		return r.run(ctx)
	})
}

// check checks the command line.
func (r *subtreeRestore) check(words []string) (err error) {
	if len(words) == 1 && r.moment.url == "" {
		r.moment.url, words = words[0], nil
	}
	switch {
	case len(words) > 0 || r.moment.url == "":
		return errors.New("name one SOURCE")
	case r.to == "":
		return errors.New("--to is missing: name the client ports of the ensemble")
	}
	r.as = cmp.Or(r.as, r.path)
	for _, path := range []string{r.path, r.as} {
		if err := proto.ValidatePath(path); err != nil {
			return fmt.Errorf("--subtree and --as: %q: %w", path, err)
		}
		if subtree.Within(path, "/zookeeper") {
			return errors.New("/zookeeper belongs to the ensemble and is not restored: name another subtree")
		}
	}
	if r.as == "/" && r.path != "/" {
		return errors.New("--as / is for --subtree / only")
	}
	r.config.Servers, r.config.Chroot, err = client.ParseServers(r.to)
	r.destination = subtree.Join(r.to, r.as)
	return cmp.Or(err, r.moment.check())
}

// run compares, asks and restores.
func (r *subtreeRestore) run(ctx context.Context) error {
	s, err := r.read(ctx, r.moment)
	if err != nil {
		return err
	}
	if !s.tree.Walk(r.path, func(proto.Znode) bool { return false }) {
		return fmt.Errorf("%s has no znode %s at zxid %v: name another path or moment", s.path, r.path, s.tree.LastZxid())
	}
	zk, err := r.security.Connect(ctx, r.config)
	if err != nil {
		return fmt.Errorf("%s: %w", r.to, err)
	}
	defer func() { _ = zk.Close() }() // after an error the session expires
	patch, err := subtree.NewPatch(ctx, znodes(s.tree, r.path), subtree.Side{ZK: zk, Path: r.as}, r.counters)
	if err != nil {
		return err
	}
	r.Line("state", "%s, zxid %v, last written %s", s.path, s.tree.LastZxid(), s.held.Time.UTC().Format(time.RFC3339))
	r.show(patch)
	switch {
	case patch.Empty():
		r.Line("restored", "%s is in that state: nothing to change", r.destination)
		return r.behind(patch)
	case r.dryRun:
		return nil
	case !r.yes && !r.confirmed(ctx):
		return errors.New("nothing was changed: answer yes, or add --yes")
	}
	if err := patch.Apply(ctx); err != nil {
		return fmt.Errorf("%w\nOnly a part is restored (%s): run restore again to continue", err, patch.Done())
	}
	r.Line("restored", "%s: %s", r.destination, patch.Done())
	return r.behind(patch)
}

// behind returns an error if sequence counters could not be moved as far as the user allowed.
func (r *subtreeRestore) behind(p *subtree.Patch) error {
	if len(p.Behind) == 0 || r.counters == 0 {
		return nil
	}
	return errors.New("sequence counters stay behind, so numbers repeat: see the warnings")
}

// confirmed asks the user.
func (r *subtreeRestore) confirmed(ctx context.Context) bool {
	cli.Print(r.Env.Err, fmt.Sprintf("Make these changes at %s? yes or no: ", r.destination))
	answer := cli.NewInput(func() (string, error) { return bufio.NewReader(r.Env.In).ReadString('\n') })
	line, _ := answer.Next(ctx) // after an error, the answer is not yes
	return strings.TrimSpace(line) == "yes"
}

// show prints the changes of a patch.
func (r *subtreeRestore) show(p *subtree.Patch) {
	for kind, label := range []string{subtree.SetACL: "ACL", subtree.Create: "create", subtree.SetData: "data", subtree.Delete: "delete"} {
		paths := make([]string, 0, len(p.Changes[kind]))
		for _, c := range p.Changes[kind] {
			paths = append(paths, subtree.Join(r.as, c.Rel))
		}
		r.list(label, paths)
	}
	for _, c := range p.Counters {
		r.Line("counter", "%s by %d", printable.Text(c.Path), c.By)
	}
	for _, c := range p.Behind {
		r.Line("WARNING", "%s: its sequence counter stays %d behind, so numbers repeat: allow that many creations with --counters", printable.Text(c.Path), c.By)
	}
	r.Line("same", "%d znodes", p.Same)
	if p.Ephemerals > 0 {
		r.Line("left out", "%d ephemeral znodes: they belonged to sessions", p.Ephemerals)
	}
	for _, path := range p.Kept {
		r.Line("kept", "%s: an ephemeral znode of a session is below", printable.Text(path))
	}
}

// list prints a number of paths, and the paths.
func (r *subtreeRestore) list(label string, paths []string) {
	if len(paths) == 0 {
		return
	}
	r.Line(label, "%d", len(paths))
	for i, path := range paths {
		if i == maxShown && !r.dryRun {
			r.Line("", "... %d more: --dry-run shows all", len(paths)-i)
			return
		}
		r.Line("", "%s", printable.Text(path))
	}
}

// znodes yields a subtree of a tree, except /zookeeper.
func znodes(t *datatree.Tree, root string) iter.Seq2[*subtree.Znode, error] {
	return func(yield func(*subtree.Znode, error) bool) {
		t.Walk(root, func(z proto.Znode) bool {
			if root == "/" && subtree.Within(z.Path, "/zookeeper") {
				return true
			}
			rel := strings.TrimPrefix(z.Path, strings.TrimSuffix(root, "/"))
			return yield(&subtree.Znode{
				Path: z.Path, Rel: strings.TrimSuffix(rel, "/"), Stat: z.Stat, Data: z.Data, ACL: z.ACL,
				Container: z.Mode == proto.ModeContainer, TTLMs: z.TTLMs,
			}, nil)
		})
	}
}
