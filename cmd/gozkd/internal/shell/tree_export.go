package shell

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/shell/subtree"
)

func runExport(ctx context.Context, c *call) error {
	root := c.args[0]
	if err := checkPath(root); err != nil {
		return err
	}
	from := subtree.Side{ZK: c.zk, Path: root, Kinds: c.kinds(ctx, c.zk, c.host)}
	p := c.progress()
	export := func(write func(any) error) (*subtree.Exported, error) {
		return subtree.Export(ctx, from, !c.has("A"), write, func(e *subtree.Exported) { p.at(e.Znodes, e.Bytes) })
	}
	var e *subtree.Exported
	var err error
	if len(c.args) > 1 && c.args[1] != "-" {
		e, err = exportFile(c.args[1], export)
	} else {
		out := &listing{c: c}
		e, err = export(func(line any) error { return out.add(exportLine{line}) })
		err = errors.Join(out.flush(), err)
	}
	if err != nil {
		return told(ctx, err)
	}
	return c.exported(e)
}

// exportFile writes an export to a file, which is there only when it is complete. It may hold secrets: others can't read it.
func exportFile(name string, export func(func(any) error) (*subtree.Exported, error)) (e *subtree.Exported, err error) {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".part-*")
	if err != nil {
		return nil, err
	}
	w := bufio.NewWriterSize(f, streamBytes)
	e, err = export(func(line any) error {
		b, err := subtree.Line(line)
		if err != nil {
			return err
		}
		_, err = w.Write(b)
		return err
	})
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(f.Name()))
	}
	return e, nil
}

// exported says what came out. What could not be read is an error.
func (c *call) exported(e *subtree.Exported) error {
	line := fmt.Sprintf("Exported %s, %s", plural(e.Znodes, "znode"), human(e.Bytes))
	if e.Ephemerals > 0 {
		line += fmt.Sprintf("; %d ephemeral, which import leaves out", e.Ephemerals)
	}
	c.say(c.err, line)
	var b bytes.Buffer
	if counters(&b, e.Sequential); b.Len() > 0 {
		c.say(c.err, strings.TrimSuffix(b.String(), "\n"))
	}
	if e.Masked > 0 {
		return failure(fmt.Sprintf("%s with an ACL that the server shows only in part: export again with a credential that may change it (addauth)",
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

// exportLine is a line of an export; its JSON is its text.
type exportLine struct{ line any }

func (r exportLine) text(out, _ io.Writer) {
	b, err := subtree.Line(r.line)
	if err != nil {
		panic(err) // strings and numbers can be marshalled
	}
	_, _ = out.Write(b)
}

// MarshalJSON is the line.
func (r exportLine) MarshalJSON() ([]byte, error) { return json.Marshal(r.line) }

func runImport(ctx context.Context, c *call) error {
	to := c.args[0]
	if err := checkPath(to); err != nil {
		return err
	}
	if c.has("u") && c.has("k") {
		return usageError("-u and -k exclude each other")
	}
	in, end, err := c.importFrom()
	if err != nil {
		return err
	}
	defer end()
	l := &subtree.Loader{ZK: c.zk, To: to, Ephemerals: c.has("e"), WithoutACL: c.has("A")}
	switch {
	case c.has("u"):
		l.Existing = subtree.Replace
	case c.has("k"):
		l.Existing = subtree.Keep
	}
	p := c.progress()
	l.Seen = func(l *subtree.Loader) { p.at(l.Created+l.Changed, 0) }
	if err := load(ctx, in, l); err != nil {
		if l.Created+l.Changed > 0 {
			err = fmt.Errorf("%w; before that %d znodes were created and %d changed", err, l.Created, l.Changed)
		}
		return told(ctx, err)
	}
	return c.show(importResult{l.Created, l.Changed, l.Kept, l.Skipped})
}

// importFrom opens the file that is named, or standard input where that holds no lines for the shell.
func (c *call) importFrom() (io.Reader, func(), error) {
	if len(c.args) < 2 || c.args[1] == "-" {
		if !c.once {
			return nil, nil, usageError("standard input has the lines of the shell: name a file")
		}
		return c.env.In, func() {}, nil
	}
	f, err := os.Open(c.args[1])
	if err != nil {
		return nil, nil, failure(err.Error())
	}
	return f, func() { _ = f.Close() }, nil // it was only read
}

func load(ctx context.Context, in io.Reader, l *subtree.Loader) error {
	r, err := subtree.NewReader(in)
	if err != nil {
		return err
	}
	for {
		record, err := r.Next()
		if errors.Is(err, io.EOF) {
			return l.Flush(ctx)
		}
		if err != nil {
			return err
		}
		if err := l.Add(ctx, record); err != nil {
			return err
		}
	}
}

type importResult struct {
	Created    int64 `json:"created"`
	Changed    int64 `json:"changed,omitempty"`
	Kept       int64 `json:"kept,omitempty"`
	Ephemerals int64 `json:"ephemerals_left_out,omitempty"`
}

func (r importResult) text(_, err io.Writer) {
	line := fmt.Sprintf("Created %s", plural(r.Created, "znode"))
	if r.Changed > 0 {
		line += fmt.Sprintf(", changed %d", r.Changed)
	}
	if r.Kept > 0 {
		line += fmt.Sprintf(", kept %d that were there", r.Kept)
	}
	if r.Ephemerals > 0 {
		line += fmt.Sprintf(", left out %s", plural(r.Ephemerals, "ephemeral znode"))
	}
	_, _ = io.WriteString(err, line+"\n")
}
