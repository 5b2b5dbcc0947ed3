package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
)

// editTimeout is how long the write behind an editor may take.
const editTimeout = 30 * time.Second

// runEdit lets somebody change a znode's data in an editor. It is written only if the znode still has the version that was
// read, and kept in its file if it could not be.
func runEdit(ctx context.Context, c *call) error {
	if len(c.args) != 1 {
		return errUsage
	}
	path := c.args[0]
	if err := checkPath(path); err != nil {
		return err
	}
	data, st, err := c.zk.Get(ctx, path, false)
	switch {
	case err != nil:
		return err
	case !utf8.Valid(data):
		return failure("edit: the data of " + path + " is no text (UTF-8), an editor could spoil it; nothing was written")
	}
	text, file, err := c.inEditor(path, data)
	switch {
	case err != nil:
		return err
	case string(text) == string(data):
		return errors.Join(file.remove(), c.show(editResult{Path: path}))
	}
	// A Ctrl-C that was typed in the editor was meant for it.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), editTimeout)
	defer cancel()
	written, err := c.zk.Set(ctx, path, text, st.Version)
	if err != nil {
		return failure(c.notWritten(ctx, path, st.Version, err) + "\nYour text is in " + file.name)
	}
	return errors.Join(file.remove(), c.show(editResult{path, true, c.stat(written)}))
}

// notWritten says why the data was not written, and what then is to be done.
func (c *call) notWritten(ctx context.Context, path string, version int32, err error) string {
	var e *client.Error
	switch {
	case errors.Is(err, proto.ErrBadVersion):
		now := "another version now"
		if st, ok, err := c.zk.Exists(ctx, path, false); err == nil && ok {
			now = fmt.Sprintf("version %d now", st.Version)
		}
		return fmt.Sprintf("edit: %s was changed meanwhile: you edited version %d, it has %s. Nothing was written. "+
			"Edit it again and take over what you need from your text.", path, version, now)
	case errors.Is(err, proto.ErrNoNode):
		return "edit: " + path + " was deleted meanwhile. Nothing was written."
	case errors.As(err, &e) && e.Unknown:
		return "edit: " + message(err) + ". Whether it was written is unknown."
	}
	return "edit: " + message(err) + ". Nothing was written."
}

type editResult struct {
	Path    string `json:"path"`
	Changed bool   `json:"changed"`
	Stat    *stat  `json:"stat,omitempty"` // the new one
}

func (r editResult) text(out, _ io.Writer) {
	if !r.Changed {
		_, _ = fmt.Fprintln(out, r.Path+" is unchanged")
		return
	}
	_, _ = fmt.Fprintf(out, "%s has version %d now\n", r.Path, r.Stat.Version)
}
