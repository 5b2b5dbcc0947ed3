package shell

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/gozkd/gozkd/internal/subtree"
	"github.com/gozkd/gozkd/internal/vfs"
)

func runExport(ctx context.Context, c *call) error {
	root := c.args[0]
	if err := checkPath(root); err != nil {
		return err
	}
	from := subtree.Side{ZK: c.zk, Path: root, Kinds: c.kinds(ctx, c.zk, c.host)}
	p := c.progress()
	var e *subtree.Exported
	export := func(w io.Writer) (err error) {
		e, err = subtree.Export(ctx, from, !c.has("A"), w, func(e *subtree.Exported) { p.report(e.Znodes, e.Bytes) })
		return err
	}
	var err error
	if len(c.args) > 1 && c.args[1] != "-" {
		err = exportFile(c.args[1], export)
	} else {
		err = c.list(func(l *listing) error { return export(l) })
	}
	if err != nil {
		return subtreeError(ctx, err)
	}
	return c.showExported(e)
}

// exportFile writes an export to a file, which appears only when it is complete. Only the owner can
// read the file, because it may contain secrets.
func exportFile(name string, export func(io.Writer) error) error {
	return vfs.WriteWhole(name, filepath.Base(name)+".part-*", func(f *os.File) error {
		w := bufio.NewWriterSize(f, listingBytes)
		if err := export(w); err != nil {
			return err
		}
		return w.Flush()
	})
}

// showExported prints a summary. If a part could not be read, showExported returns an error.
func (c *call) showExported(e *subtree.Exported) error {
	line := fmt.Sprintf("Exported %s, %s", plural(e.Znodes, "znode"), humanize.IBytes(uint64(e.Bytes)))
	if e.Ephemerals > 0 {
		line += fmt.Sprintf("; %d ephemeral, which import skips by default", e.Ephemerals)
	}
	c.say(c.err, line)
	if e.Masked > 0 {
		return failure(fmt.Sprintf("%s with an ACL that the server shows only in part: export again with a credential that may change the ACL (addauth)",
			plural(e.Masked, "znode")))
	}
	if e.NMissing > 0 {
		more := ""
		if rest := e.NMissing - int64(len(e.Missing)); rest > 0 {
			more = fmt.Sprintf(" and %d others", rest)
		}
		return failure("Not in the export, insufficient permission : " + strings.Join(e.Missing, " ") + more)
	}
	return nil
}

func runImport(ctx context.Context, c *call) error {
	to := c.args[0]
	if err := checkPath(to); err != nil {
		return err
	}
	if c.has("u") && c.has("k") {
		return usageError("-u and -k exclude each other")
	}
	limit, err := c.number(countersFlag.name, 0, defaultCreations)
	if err != nil {
		return err
	}
	in, end, err := c.openImport()
	if err != nil {
		return err
	}
	defer end()
	l := &subtree.Loader{
		ZK: c.zk, To: to, Ephemerals: c.has("e"), WithoutACL: c.has("A"),
		Counters: subtree.Counters{Limit: int64(limit)},
	}
	switch {
	case c.has("u"):
		l.Existing = subtree.Replace
	case c.has("k"):
		l.Existing = subtree.Keep
	}
	p := c.progress()
	l.Seen = func(l *subtree.Loader) { p.report(l.Created+l.Changed, 0) }
	if err := l.Load(ctx, in); err != nil {
		if l.Created+l.Changed > 0 {
			err = fmt.Errorf("%w; before that %d znodes were created and %d changed", err, l.Created, l.Changed)
		}
		return subtreeError(ctx, err)
	}
	return c.showImported(l)
}

func (c *call) showImported(l *subtree.Loader) error {
	text := fmt.Sprintf("Created %s", plural(l.Created, "znode"))
	if l.Changed > 0 {
		text += fmt.Sprintf(", changed %d", l.Changed)
	}
	if l.Kept > 0 {
		text += fmt.Sprintf(", kept %d existing", l.Kept)
	}
	if l.Skipped > 0 {
		text += fmt.Sprintf(", skipped %s", plural(l.Skipped, "ephemeral znode"))
	}
	return c.showCounted(&l.Counters, result{err: text + "\n" + countersWarning(&l.Counters), value: struct {
		Created    int64             `json:"created"`
		Changed    int64             `json:"changed,omitempty"`
		Kept       int64             `json:"kept,omitempty"`
		Ephemerals int64             `json:"ephemerals_left_out,omitempty"`
		Behind     []subtree.Counter `json:"counters_behind,omitempty"`
	}{l.Created, l.Changed, l.Kept, l.Skipped, l.Counters.Behind}})
}

// openImport opens the named file, or standard input unless the shell reads lines from there.
func (c *call) openImport() (io.Reader, func(), error) {
	if len(c.args) < 2 || c.args[1] == "-" {
		if !c.singleCommand {
			return nil, nil, usageError("the shell reads its lines from standard input: name a file")
		}
		return c.env.In, func() {}, nil
	}
	f, err := os.Open(c.args[1])
	if err != nil {
		return nil, nil, failure(err.Error())
	}
	return f, func() { _ = f.Close() }, nil // the file was only read
}
