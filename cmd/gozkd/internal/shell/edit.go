package shell

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/shell/console"
	"github.com/gozkd/gozkd/proto"
)

// editTimeout bounds the write after the editor has exited.
const editTimeout = 30 * time.Second

// runEdit lets the user change a znode's data in an editor. The new data is written only if the
// znode still has the version that was read; otherwise the edited file is kept.
func runEdit(ctx context.Context, c *call) (err error) {
	if len(c.args) != 1 {
		return errUsage
	}
	znode := c.args[0]
	data, st, err := c.zk.Get(ctx, znode, false)
	switch {
	case err != nil:
		return err
	case !utf8.Valid(data):
		return failure("edit: the data of " + znode + " is not UTF-8 text, and an editor could damage it; nothing was written")
	}
	// The file is in a directory of its own, which only its owner can read.
	dir, err := os.MkdirTemp("", "gozkd-edit-*")
	if err != nil {
		return fmt.Errorf("edit: %w", err)
	}
	kept, file := false, filepath.Join(dir, editFileName(znode))
	defer func() {
		if !kept {
			err = cmp.Or(err, os.RemoveAll(dir))
		}
	}()
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return fmt.Errorf("edit: %w", err)
	}
	ran := c.runEditor(file)
	text, err := os.ReadFile(file)
	if !bytes.HasSuffix(data, []byte("\n")) {
		text = bytes.TrimSuffix(text, []byte("\n")) // editors end the last line
	}
	switch same := bytes.Equal(text, data); {
	case err != nil || ran != nil && same:
		return errors.Join(ran, err)
	case ran != nil:
		kept = true
		return fmt.Errorf("%w; nothing was written\nYour text is in %s", ran, file)
	case same:
		return c.print(editResult{Path: znode}, znode+" is unchanged\n")
	}
	// A Ctrl-C typed in the editor was meant for the editor.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), editTimeout)
	defer cancel()
	written, err := c.zk.Set(ctx, znode, text, st.Version)
	if err != nil {
		kept = true
		return failure(c.explainNotWritten(ctx, znode, st.Version, err) + "\nYour text is in " + file)
	}
	return c.print(editResult{znode, true, c.stat(written)}, fmt.Sprintf("%s now has version %d\n", znode, written.Version))
}

type editResult struct {
	Path    string `json:"path"`
	Changed bool   `json:"changed"`
	Stat    *stat  `json:"stat,omitempty"` // after the change
}

func (c *call) explainNotWritten(ctx context.Context, path string, version int32, err error) string {
	var e *client.Error
	switch {
	case errors.Is(err, proto.ErrBadVersion):
		now := "another version"
		if st, ok, err := c.zk.Exists(ctx, path, false); err == nil && ok {
			now = fmt.Sprintf("version %d", st.Version)
		}
		return fmt.Sprintf("edit: %s has changed: you edited version %d, it now has %s. Nothing was written. "+
			"Edit it again and copy what you need from your text.", path, version, now)
	case errors.Is(err, proto.ErrNoNode):
		return "edit: " + path + " has been deleted. Nothing was written."
	case errors.As(err, &e) && e.Unknown:
		return "edit: " + message(err) + ". The data may or may not have been written."
	}
	return "edit: " + message(err) + ". Nothing was written."
}

// editFileName returns a name like the znode's: editors derive the syntax from the extension.
func editFileName(znode string) string {
	name := strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:*?"<>|`, r) {
			return '_'
		}
		return r
	}, path.Base(znode))
	if len(name) > 200 { // file systems allow 255 bytes, and editors append to the name
		name = name[len(name)-200:]
	}
	return strings.ToValidUTF8(name, "_")
}

// runEditor runs the editor and waits for it. Events are printed after it has exited.
func (c *call) runEditor(file string) error {
	windows := runtime.GOOS == "windows"
	editor := cmp.Or(strings.TrimSpace(c.env.Getenv("VISUAL")), strings.TrimSpace(c.env.Getenv("EDITOR")),
		map[bool]string{true: "notepad", false: "vi"}[windows])
	// The variables contain a command line, such as "code --wait".
	var cmd *exec.Cmd
	if windows {
		words := append(split(editor), file)
		cmd = exec.Command(words[0], words[1:]...)
	} else {
		cmd = exec.Command("sh", "-c", editor+` "$@"`, editor, file)
	}
	cmd.Stdout, cmd.Stderr = c.env.Out, c.env.Err
	if in, ok := c.env.In.(*os.File); ok && (c.singleCommand || console.IsTerminal(in, in)) {
		cmd.Stdin = in // otherwise standard input is the script that is being executed
	}
	defer c.holdEvents()()
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("edit: the editor %q: %w", editor, err)
	}
	return nil
}

// holdEvents delays the printing of events until the returned function is called.
func (s *Shell) holdEvents() (release func()) {
	held := newEventQueue("/", true)
	s.watching.Store(held)
	return func() {
		s.watching.Store(nil)
		events, dropped := held.take()
		for _, e := range events {
			s.event(e)
		}
		if dropped {
			s.note("Some events were dropped while the editor ran.")
		}
	}
}
