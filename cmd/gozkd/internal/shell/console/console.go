package console

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"

	"golang.org/x/term"
)

// ErrInterrupted is what ReadLine returns for Ctrl-C. The line is forgotten.
var ErrInterrupted = errors.New("console: interrupted")

// Config is what a Console is made of.
type Config struct {
	// In and Out are a terminal: IsTerminal holds for both. The Console does not close them.
	In, Out *os.File
	// History is walked through by the arrow keys and searched by Ctrl-R. ReadLine adds nothing to it.
	History *History
	// Complete says what Tab does to a line that is typed up to before. It may wait, not longer than people do; others
	// may print meanwhile. Nil: Tab does nothing.
	Complete func(ctx context.Context, before string) Completion
	// LineDone is called at the end of each ReadLine, while Ctrl-C is still a key: a signal that came before is for
	// nothing that begins after the line, one that comes later may be. It may not call the Console. Nil: nothing is called.
	LineDone func()
}

// Console is a terminal. Write is safe for concurrent use, also beside ReadLine; ReadLine is for one goroutine.
type Console struct {
	cfg    Config
	keys   keys
	chunks chan chunk // unbuffered but for one: the reader must be able to leave when nobody waits any more
	asked  bool       // a reader is under way

	mu     sync.Mutex // guards what follows, and the order of what is written
	editor *term.Terminal
	prompt func() string
}

// chunk is what one read of the terminal brought.
type chunk struct {
	data []byte
	err  error
}

// IsTerminal reports whether a Console can be made of in and out.
func IsTerminal(in, out *os.File) bool {
	return term.IsTerminal(int(in.Fd())) && term.IsTerminal(int(out.Fd()))
}

// New returns a Console. It leaves the terminal alone until ReadLine.
func New(cfg Config) *Console {
	return &Console{cfg: cfg, chunks: make(chan chunk, 1)}
}

// Width returns the number of columns, 80 where the terminal does not say.
func (c *Console) Width() int {
	w, _, err := term.GetSize(int(c.cfg.Out.Fd()))
	if err != nil || w <= 0 {
		return 80
	}
	return w
}

// Write prints p, above the line that is being typed if there is one. It should end in a newline.
func (c *Console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.editor == nil {
		return c.cfg.Out.Write(p)
	}
	c.editor.SetPrompt(c.prompt())
	return c.editor.Write(p)
}

// ReadLine returns the next line, without its end. prompt is asked before the line, and again whenever the line is
// drawn anew after a Write; it may not call the Console.
//
// Errors: io.EOF for Ctrl-D on an empty line and for the terminal's end, ErrInterrupted for Ctrl-C, ctx's when it ends,
// and what reading or setting the terminal failed with.
func (c *Console) ReadLine(ctx context.Context, prompt func() string) (line string, err error) {
	restore, err := c.begin(ctx, prompt)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, restore()) }()
	line, err = c.editor.ReadLine()
	if paste := term.ErrPasteIndicator; errors.As(err, &paste) {
		err = nil // a line is a line
	}
	switch {
	case err == nil:
		return line, nil
	case errors.Is(err, ErrInterrupted):
		_, _ = io.WriteString(c.cfg.Out, "^C\r\n") // for the eye only
	default:
		_, _ = io.WriteString(c.cfg.Out, "\r\n")
	}
	return "", err
}

// begin sets the terminal up for a line. What it returns puts it back.
func (c *Console) begin(ctx context.Context, prompt func() string) (restore func() error, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	back, err := raw(c.cfg.In, c.cfg.Out)
	if err != nil {
		return nil, err
	}
	// A new one for each line: after an error the editor still holds the line that it was at, and the keys behind it.
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

// resize tells the editor how large the terminal is now. No signal says so on every system; each key asks.
func (c *Console) resize() {
	w, h, err := term.GetSize(int(c.cfg.Out.Fd()))
	if err == nil && w > 0 {
		_ = c.editor.SetSize(w, h) // fails with the terminal, as the next read does
	}
}

// device is the terminal as the editor sees it, while a line is read.
type device struct {
	c   *Console
	ctx context.Context
}

func (d *device) Write(p []byte) (int, error) { return d.c.cfg.Out.Write(p) }

// Read hands out keys up to the end of a line: those behind it are for the next ReadLine.
func (d *device) Read(p []byte) (int, error) {
	for {
		n, err := d.c.keys.take(p)
		if n > 0 || err != nil {
			return n, err
		}
		data, err := d.c.next(d.ctx)
		if err != nil {
			return 0, err
		}
		d.c.keys.add(data)
		d.c.resize()
	}
}

// next waits for what the terminal sends next.
func (c *Console) next(ctx context.Context) ([]byte, error) {
	if !c.asked {
		c.asked = true
		// Stopped by the next key or the terminal's end: a read of a terminal can't be cut short. Awaited below, or by
		// the next call, or by nobody when the program ends.
		go func() {
			buf := make([]byte, 1024)
			n, err := c.cfg.In.Read(buf)
			c.chunks <- chunk{buf[:n], err}
		}()
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case got := <-c.chunks:
		c.asked = false
		if len(got.data) > 0 {
			return got.data, nil // an error comes again
		}
		return nil, got.err
	}
}
