package shell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/shell/subtree"
)

const (
	streamBytes   = 32 << 10               // of text that are written at once
	streamEvery   = 100 * time.Millisecond // so long does text wait for more
	progressEvery = 2 * time.Second        // so often is told how far long work is
)

// listing shows many results of one command: as JSON a line each, as text in larger pieces.
type listing struct {
	c       *call
	text    bytes.Buffer
	flushed time.Time
}

func (s *listing) add(r result) error {
	if s.c.settings.json {
		return s.c.show(r)
	}
	r.text(&s.text, s.c.err)
	if s.text.Len() < streamBytes && time.Since(s.flushed) < streamEvery {
		return nil
	}
	return s.flush()
}

func (s *listing) flush() error {
	if s.text.Len() == 0 {
		return nil
	}
	_, err := s.c.out.Write(s.text.Bytes())
	s.text.Reset()
	s.flushed = time.Now()
	return err
}

// progress tells on standard error how far long work is.
type progress struct {
	c    *call
	last time.Time
}

func (c *call) progress() *progress { return &progress{c, time.Now()} }

func (p *progress) at(znodes, dataBytes int64) {
	if now := time.Now(); !p.c.has("q") && now.Sub(p.last) >= progressEvery {
		p.last = now
		size := ""
		if dataBytes > 0 {
			size = ", " + human(dataBytes)
		}
		p.c.say(p.c.err, fmt.Sprintf("%s: %d znodes%s", p.c.command.name, znodes, size))
	}
}

// human returns a size in bytes with three digits or so.
func human(n int64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return strconv.FormatInt(n, 10) + " B"
	}
	f, i := float64(n)/1024, 0
	for ; f >= 1000 && i < len(units)-1; i++ {
		f /= 1024
	}
	return fmt.Sprintf("%.1f %ciB", f, units[i])
}

// told returns an error of package subtree with all its words. An error of the server alone stays as it is: the shell knows
// better words for it.
func told(ctx context.Context, err error) error {
	var e *client.Error
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil && errors.As(err, &e):
		return e
	}
	if e, ok := err.(*client.Error); ok { //nolint:errorlint // one that is wrapped has more to say
		return e
	}
	return failure(err.Error())
}

// denied counts what may not be read, and says so at the end.
type denied struct {
	count int64
	first string
}

func (d *denied) add(n *subtree.Node) {
	if d.count++; d.count == 1 {
		d.first = n.Path
	}
}

// err is nil if all could be read.
func (d *denied) err() error {
	switch d.count {
	case 0:
		return nil
	case 1:
		return failure("Insufficient permission : " + d.first)
	default:
		return failure(fmt.Sprintf("Insufficient permission : %s and %d others", d.first, d.count-1))
	}
}

// walk is subtree.Walk over what may be read. It returns an error behind the walk if something may not.
func (c *call) walk(ctx context.Context, path string, o subtree.Options, visit func(*subtree.Node) error) error {
	var missing denied
	p := c.progress()
	var znodes, dataBytes int64
	err := subtree.Walk(ctx, c.zk, path, o, func(n *subtree.Node) error {
		if n.Denied != nil {
			missing.add(n)
			return nil
		}
		znodes++
		dataBytes += int64(n.Stat.DataLength)
		p.at(znodes, dataBytes)
		return visit(n)
	})
	if err != nil {
		return told(ctx, err)
	}
	return missing.err()
}

// number returns the value of a flag that is a number of at least least, or without the flag otherwise.
func (c *call) number(name string, least, otherwise int) (int, error) {
	if !c.has(name) {
		return otherwise, nil
	}
	n, err := strconv.Atoi(c.value(name))
	if err != nil || n < least {
		return 0, usageError(fmt.Sprintf("-%s must be a number of at least %d: %s", name, least, c.value(name)))
	}
	return n, nil
}

// side opens what an argument names: a path of this session, or host:port/path of another server. close ends what it opened.
func (c *call) side(ctx context.Context, arg string) (side subtree.Side, end func(), err error) {
	if strings.HasPrefix(arg, "/") || !strings.ContainsAny(arg, ":,") {
		return subtree.Side{ZK: c.zk, Path: arg, Connect: c.host}, func() {}, checkPath(arg)
	}
	servers, path, err := client.ParseServers(arg)
	if err != nil {
		return side, nil, usageError(err.Error())
	}
	if path == "" {
		path = "/"
	}
	ctx, cancel := context.WithTimeout(ctx, c.settings.timeout)
	defer cancel()
	zk, err := client.Connect(ctx, client.Config{
		Servers: servers, SessionTimeout: c.settings.timeout, ConnectTimeout: min(c.settings.timeout, connectTimeout), Auths: c.auths,
	})
	if err != nil {
		return side, nil, failure(err.Error())
	}
	return subtree.Side{ZK: zk, Path: path, Connect: strings.Join(servers, ",")}, func() { _ = zk.Close() }, nil // it ends by itself if it can't be told
}

// sides opens the first two arguments.
func (c *call) sides(ctx context.Context) (a, b subtree.Side, end func(), err error) {
	a, endA, err := c.side(ctx, c.args[0])
	if err != nil {
		return a, b, nil, err
	}
	b, endB, err := c.side(ctx, c.args[1])
	if err != nil {
		endA()
		return a, b, nil, err
	}
	return a, b, func() { endA(); endB() }, nil
}

// plural returns "1 znode" and "2 znodes".
func plural(n int64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.FormatInt(n, 10) + " " + one + "s"
}
