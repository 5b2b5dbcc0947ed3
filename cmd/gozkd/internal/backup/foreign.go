package backup

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/clientflags"
	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/datatree"
)

// FoundWith makes a data directory whose member id begins a new ensemble with a tree that comes
// from elsewhere, reads it back and compares it. logDir "" means dir.
func FoundWith(tree *datatree.Tree, id uint64, dir, logDir string) error {
	// As if the entry before the first were applied: a log from index 1 on means no state.
	_, err := found(consensus.SavedState{Index: 1}, tree, target{id: id, dir: dir, logDir: logDir}, 1)
	return err
}

// Load reads the state of a backup file, of a stopped server's data directory with its log in
// logDir, or of a running server's admin endpoint.
func Load(
	ctx context.Context, from, logDir, authFile string, env cli.Env, security *clientflags.Security,
) (_ *datatree.Tree, failed error) {
	auth, err := authorization(from, logDir, authFile, env)
	if err != nil {
		return nil, err
	}
	if isURL(from) {
		dir, err := os.MkdirTemp("", "gozkd-export-")
		if err != nil {
			return nil, err
		}
		defer func() { failed = errors.Join(failed, os.RemoveAll(dir)) }()
		file := filepath.Join(dir, "checkpoint.db")
		if err := download(ctx, from, auth, file, security); err != nil {
			return nil, err
		}
		from = file
	}
	s, err := readSource(from, logDir)
	if err != nil {
		return nil, err
	}
	return s.tree, nil
}
