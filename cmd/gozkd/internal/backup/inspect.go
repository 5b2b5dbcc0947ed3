package backup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/internal/vfs"
)

// Describe prints a description of each data directory or checkpoint file, and names the one with
// the most recent state. It returns the exit status.
func Describe(ctx context.Context, cmd cli.Command, words []string, logDir string) (status int) {
	c, env := &command{cmd}, cmd.Env
	var most *source
	clusters := make(map[uint64]bool)
	for i, path := range words {
		if ctx.Err() != nil {
			return c.Fail(ctx.Err())
		}
		if i > 0 {
			cli.Print(env.Out, "\n")
		}
		s, err := c.inspect(path, logDir)
		if err != nil {
			status = c.Fail(err)
		}
		if s == nil {
			continue
		}
		clusters[s.held.Cluster] = true
		if most == nil || cmp.Or(
			cmp.Compare(s.held.Term, most.held.Term), cmp.Compare(s.held.Index, most.held.Index)) > 0 {
			most = s // by the rule of raft
		}
	}
	switch {
	case len(words) == 1 || most == nil:
	case len(clusters) > 1:
		status = c.Fail(errors.New("they belong to different ensembles and can't be compared"))
	default:
		cli.Print(env.Out, fmt.Sprintf("\nMost recent: %s, last entry term %d, index %d.\n", most.path, most.held.Term, most.held.Index))
	}
	return status
}

// inspect prints a source. If the log is damaged and the checkpoint is good, inspect prints the
// checkpoint, and returns it along with the error.
func (c *command) inspect(path, logDir string) (*source, error) {
	s, err := readSource(path, logDir)
	log := "whole"
	if broken := (*logError)(nil); errors.As(err, &broken) && !errors.Is(err, vfs.ErrLocked) {
		alone, aloneErr := readSource(broken.checkpoint, "")
		if aloneErr != nil {
			return nil, errors.Join(err, aloneErr)
		}
		s, log = alone, "NOT WHOLE: the following describes the checkpoint alone"
	}
	if s == nil {
		return nil, err
	}
	h := s.held
	if s.path == path && s.dir {
		c.Line("directory", "%s", path)
		if h.TornBytes > 0 {
			log = fmt.Sprintf("whole, plus %d bytes of an unfinished append that was never acknowledged", h.TornBytes)
		}
	} else {
		c.Line("file", "%s", s.path)
	}
	file := s.path
	if s.dir {
		file = checkpointIn(s.path)
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		logDir = cmp.Or(logDir, path)
		c.Line("log", "%s; %s in %s", log, humanize.IBytes(uint64(vfs.SizeBelow(filepath.Join(logDir, "wal")))), filepath.Join(logDir, "wal"))
	}
	c.Line("checkpoint", "index %d, %s", h.Checkpoint, sizeOf(file))
	c.Line("last entry", "term %d, index %d; known to be committed up to %d", h.Term, h.Index, h.Committed)
	c.Line("member",
		"%d of ensemble %016x, voters %v, learners %v", memberid.Number(h.Member), h.Cluster, memberid.Numbers(h.Voters), memberid.Numbers(h.Learners))
	c.Line("level", "%d; versions of gozkd that do not support this feature level cannot use it", h.Level)
	if set, version := s.tree.Config(); len(set) > 0 {
		c.Line("servers", "%s", strings.ReplaceAll(set.Text(version), "\n", "\n            "))
	}
	c.describeState(s)
	return s, err
}
