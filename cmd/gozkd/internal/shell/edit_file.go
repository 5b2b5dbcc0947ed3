package shell

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/shell/console"
)

// editFile is a file that holds a znode's data for an editor, in a folder of its own, for its owner's eyes only.
type editFile struct{ name string }

func newEditFile(znode string, data []byte) (editFile, error) {
	dir, err := os.MkdirTemp("", "gozkd-edit-*") // 0700
	if err != nil {
		return editFile{}, err
	}
	f := editFile{filepath.Join(dir, fileName(znode))}
	if err := os.WriteFile(f.name, data, 0o600); err != nil {
		return editFile{}, errors.Join(err, f.remove())
	}
	return f, nil
}

// fileName returns a name like the znode's: editors go by what is behind the dot.
func fileName(znode string) string {
	name := strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:*?"<>|`, r) {
			return '_'
		}
		return r
	}, path.Base(znode))
	if len(name) > 200 { // file systems allow 255 bytes, and editors add some
		name = name[len(name)-200:]
	}
	return strings.ToValidUTF8(name, "_")
}

func (f editFile) remove() error { return os.RemoveAll(filepath.Dir(f.name)) }

// inEditor returns what the editor made of data, and the file that it is in. On an error there is no file, or the error
// names it.
func (c *call) inEditor(znode string, data []byte) ([]byte, editFile, error) {
	f, err := newEditFile(znode, data)
	if err != nil {
		return nil, f, fmt.Errorf("edit: %w", err)
	}
	ran := c.edit(f.name)
	text, err := os.ReadFile(f.name)
	text = asBefore(text, data)
	switch {
	case ran == nil && err == nil:
		return text, f, nil
	case err != nil || bytes.Equal(text, data):
		return nil, f, errors.Join(ran, err, f.remove())
	}
	return nil, f, fmt.Errorf("%w; nothing was written\nYour text is in %s", ran, f.name)
}

// asBefore takes away the newline that editors put behind the last line, if the data had none there.
func asBefore(text, data []byte) []byte {
	if bytes.HasSuffix(data, []byte("\n")) {
		return text
	}
	return bytes.TrimSuffix(text, []byte("\n"))
}

// edit runs the editor and waits for it. Events are not printed meanwhile, but when it has ended.
func (c *call) edit(file string) error {
	editor := strings.TrimSpace(c.env.Getenv("VISUAL"))
	if editor == "" {
		editor = strings.TrimSpace(c.env.Getenv("EDITOR"))
	}
	windows := runtime.GOOS == "windows"
	switch {
	case editor != "":
	case windows:
		editor = "notepad"
	default:
		editor = "vi"
	}
	// What the variables hold is a command line, not a name: "code --wait".
	var cmd *exec.Cmd
	if windows {
		words := append(split(editor), file)
		cmd = exec.Command(words[0], words[1:]...)
	} else {
		cmd = exec.Command("sh", "-c", editor+` "$@"`, editor, file)
	}
	cmd.Stdout, cmd.Stderr = c.env.Out, c.env.Err
	if in, ok := c.env.In.(*os.File); ok && (c.once || console.IsTerminal(in, in)) {
		cmd.Stdin = in // else it is the script that this line is of
	}
	defer c.holdEvents()()
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("edit: the editor %q: %w", editor, err)
	}
	return nil
}

// holdEvents keeps events from being printed until the function that it returns is called, which prints them.
func (s *Shell) holdEvents() (release func()) {
	held := newStream("/", true)
	s.stream.Store(held)
	return func() {
		s.stream.Store(nil)
		events, dropped := held.take()
		for _, e := range events {
			s.event(e)
		}
		if dropped {
			s.note("There were more events than are kept while an editor runs.")
		}
	}
}
