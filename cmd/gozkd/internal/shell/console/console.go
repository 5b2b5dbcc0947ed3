package console

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"

	"golang.org/x/term"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
)

// ErrInterrupted is returned by ReadLine for Ctrl-C. The line is discarded.
var ErrInterrupted = errors.New("console: interrupted")

// Config configures a Console.
type Config struct {
	// In and Out must be a terminal: IsTerminal holds for both. The Console does not close them.
	In, Out *os.File
	// History serves the arrow keys and Ctrl-R. ReadLine does not add lines to History.
	History *History
	// Complete returns what Tab does to the line before the cursor. It may block for a moment;
	// output is printed meanwhile. Nil: Tab does nothing.
	Complete func(ctx context.Context, before string) Completion
	// LineDone is called at the end of each ReadLine while Ctrl-C is still a key. A SIGINT that
	// arrived before the call belongs to an earlier command; a later SIGINT may belong to the next
	// command. LineDone must not call the Console. It may be nil.
	LineDone func()
}

// Console is a terminal. Write is safe for concurrent use, also during a (single) ReadLine.
type Console struct {
	cfg   Config
	keys  keys
	input *cli.Input[[]byte]

	mu     sync.Mutex // guards the fields below, and orders output
	editor *term.Terminal
	prompt func() string
}

// IsTerminal reports whether in and out can be used for a Console.
func IsTerminal(in, out *os.File) bool {
	return term.IsTerminal(int(in.Fd())) && term.IsTerminal(int(out.Fd()))
}

// New returns a Console. The terminal stays unchanged before ReadLine.
func New(cfg Config) *Console {
	return &Console{cfg: cfg, input: cli.NewInput(func() ([]byte, error) {
		buf := make([]byte, 1024)
		n, err := cfg.In.Read(buf)
		if n > 0 {
			err = nil // the next read reports an error again
		}
		return buf[:n], err
	})}
}

// Width returns the number of columns. If the terminal does not report a width, Width returns 80.
func (c *Console) Width() int {
	w, _, err := term.GetSize(int(c.cfg.Out.Fd()))
	if err != nil || w <= 0 {
		return 80
	}
	return w
}

// Write prints p, above the line that is being typed if there is a line. p should end in a newline.
func (c *Console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.editor == nil {
		return c.cfg.Out.Write(p)
	}
	c.editor.SetPrompt(c.prompt())
	return c.editor.Write(p)
}

// ReadLine returns the next line without its end. prompt is called before the line, and again when
// the line is redrawn after a Write; prompt must not call the Console.
//
// Errors: io.EOF for Ctrl-D on an empty line and at the end of the input, ErrInterrupted for
// Ctrl-C, the error of ctx, and errors of the terminal.
func (c *Console) ReadLine(ctx context.Context, prompt func() string) (line string, err error) {
	restore, err := c.begin(ctx, prompt)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, restore()) }()
	line, err = c.editor.ReadLine()
	if paste := term.ErrPasteIndicator; errors.As(err, &paste) {
		err = nil // a pasted line is a normal line
	}
	switch {
	case err == nil:
		return line, nil
	case errors.Is(err, ErrInterrupted):
		_, _ = io.WriteString(c.cfg.Out, "^C\r\n") // cosmetic
	default:
		_, _ = io.WriteString(c.cfg.Out, "\r\n")
	}
	return "", err
}

// begin sets up the terminal for a line. restore undoes the changes.
func (c *Console) begin(ctx context.Context, prompt func() string) (restore func() error, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	back, err := Raw(c.cfg.In, c.cfg.Out)
	if err != nil {
		return nil, err
	}
	// Each line gets a new editor: after an error the old one holds its line and keys.
	c.editor = term.NewTerminal(&device{c, ctx}, prompt())
	c.prompt = prompt
	c.editor.History = c.cfg.History
	c.editor.AutoCompleteCallback = c.keyPressed(ctx)
	c.resize()
	c.editor.SetBracketedPasteMode(true)
	return func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.editor.SetBracketedPasteMode(false)
		c.editor = nil
		if c.cfg.LineDone != nil {
			c.cfg.LineDone()
		}
		return back()
	}, nil
}

// resize tells the editor the size of the terminal, at each key: not every system has a signal.
func (c *Console) resize() {
	w, h, err := term.GetSize(int(c.cfg.Out.Fd()))
	if err == nil && w > 0 {
		_ = c.editor.SetSize(w, h) // the next read reports the error
	}
}

// device is the terminal that the editor reads from and writes to.
type device struct {
	c   *Console
	ctx context.Context
}

func (d *device) Write(p []byte) (int, error) { return d.c.cfg.Out.Write(p) }

// Read returns keys up to the end of a line. Later keys are for the next ReadLine.
func (d *device) Read(p []byte) (int, error) {
	for {
		n, err := d.c.keys.take(p)
		if n > 0 || err != nil {
			return n, err
		}
		data, err := d.c.input.Next(d.ctx)
		if err != nil {
			return 0, err
		}
		d.c.keys.add(data)
		d.c.resize()
	}
}
