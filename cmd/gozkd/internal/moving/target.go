package moving

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/backup"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/memberid"
)

// target is a data directory to make.
type target struct {
	into, logDir string
	id           uint64 // of package memberid; 0: that of the file myid
}

func (t *target) register(flags *flag.FlagSet) {
	flags.StringVar(&t.into, "into", "", "")
	flags.StringVar(&t.logDir, "into-log-dir", "", "")
	flags.Var(memberid.Flag{ID: &t.id}, "id", "")
	cli.Alias(flags, "log-dir", "into-log-dir")
}

// member returns the id of the server that gets the data.
func (t *target) member() (uint64, error) {
	file := filepath.Join(t.into, "myid")
	text, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return max(t.id, 1), nil
	case err != nil:
		return 0, err
	}
	id, err := config.ParseMyID(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%s %w", file, err)
	case memberid.Of(id) == 0:
		return 0, fmt.Errorf("%s contains %d; allowed: 0 to %d", file, id, memberid.MaxNumber)
	case t.id != 0 && t.id != memberid.Of(id):
		return 0, fmt.Errorf("--id is %d, but %s contains %d: correct one of them", memberid.Number(t.id), file, id)
	}
	return memberid.Of(id), nil
}

// usable refuses directories with data, and a file myid that does not name a server.
func (t *target) usable() error {
	_, err := t.member()
	return errors.Join(backup.CheckEmpty(t.into), backup.CheckEmpty(t.logDir), err)
}

// found makes the data directory.
func (t *target) found(tree *datatree.Tree) error {
	id, err := t.member()
	if err != nil {
		return err
	}
	return backup.FoundWith(tree, id, t.into, t.logDir)
}

// nextSteps says how to start the new ensemble.
func (t *target) nextSteps() string {
	return fmt.Sprintf(`start this server with dataDir=%s. In an ensemble wait until it serves clients (gozkd ruok -ready),
and only then start the others, each with an EMPTY data directory. ZooKeeper must not run again with
its data: it would serve the same clients another state.`, t.into)
}
