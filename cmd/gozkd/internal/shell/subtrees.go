package shell

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/printable"
	"github.com/gozkd/gozkd/internal/probe"
	"github.com/gozkd/gozkd/internal/subtree"
)

const (
	listingBytes  = 32 << 10               // size of the text that is written at once
	listingDelay  = 100 * time.Millisecond // how long text waits for more
	progressEvery = 2 * time.Second
)

// listing shows many results: a line for each result as JSON, larger pieces as text.
type listing struct {
	c       *call
	text    bytes.Buffer
	flushed time.Time
}

// list runs f with a listing, which it flushes. The error of the flush takes precedence.
func (c *call) list(f func(*listing) error) error {
	l := &listing{c: c}
	err := f(l)
	if flushErr := l.flush(); flushErr != nil {
		return flushErr
	}
	return err
}

func (l *listing) add(value any, text func() string) error {
	if l.c.json != nil {
		return l.c.print(value, "")
	}
	l.text.WriteString(text())
	if l.text.Len() < listingBytes && time.Since(l.flushed) < listingDelay {
		return nil
	}
	return l.flush()
}

// Write adds a line of JSON, which is a result in both formats.
func (l *listing) Write(line []byte) (int, error) {
	return len(line), l.add(json.RawMessage(line), func() string { return string(line) })
}

func (l *listing) flush() error {
	if l.text.Len() == 0 {
		return nil
	}
	_, err := l.c.out.Write(l.text.Bytes())
	l.text.Reset()
	l.flushed = time.Now()
	return err
}

// progress reports the progress of a long command on standard error.
type progress struct {
	c    *call
	last time.Time
}

func (c *call) progress() *progress { return &progress{c, time.Now()} }

func (p *progress) report(znodes, dataBytes int64) {
	if now := time.Now(); !p.c.has("q") && now.Sub(p.last) >= progressEvery {
		p.last = now
		size := ""
		if dataBytes > 0 {
			size = ", " + humanize.IBytes(uint64(dataBytes))
		}
		p.c.say(p.c.err, fmt.Sprintf("%s: %d znodes%s", p.c.command.name, znodes, size))
	}
}

// plural returns "1 znode" or "2 znodes".
func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.FormatInt(n, 10) + " " + noun + "s"
}

// subtreeError makes an error of package subtree print unchanged. A bare client error is returned
// as it is: the shell has zkCli.sh's words for it.
func subtreeError(ctx context.Context, err error) error {
	e, within := errors.AsType[*client.Error](err)
	_, bare := err.(*client.Error) //nolint:errorlint // a wrapped error says more
	switch {
	case err == nil:
		return nil
	case bare, within && ctx.Err() != nil:
		return e
	}
	return failure(err.Error())
}

// walk is subtree.Walk with progress. Its error reports skipped znodes that may not be read.
func (c *call) walk(ctx context.Context, path string, o subtree.Options, visit func(*subtree.Znode) error) error {
	p := c.progress()
	var znodes, dataBytes, denied int64
	firstDenied := ""
	err := subtree.Walk(ctx, c.zk, path, o, func(n *subtree.Znode) error {
		if n.Denied != nil {
			if denied++; denied == 1 {
				firstDenied = n.Path
			}
			return nil
		}
		znodes++
		dataBytes += int64(n.Stat.DataLength)
		p.report(znodes, dataBytes)
		return visit(n)
	})
	switch {
	case err != nil:
		return subtreeError(ctx, err)
	case denied == 1:
		return failure("Insufficient permission : " + firstDenied)
	case denied > 1:
		return failure(fmt.Sprintf("Insufficient permission : %s and %d others", firstDenied, denied-1))
	}
	return nil
}

// number returns the value of a flag, at least least; missing without the flag.
func (c *call) number(name string, least, missing int) (int, error) {
	if !c.has(name) {
		return missing, nil
	}
	n, err := strconv.Atoi(c.value(name))
	if err != nil || n < least {
		return 0, usageError(fmt.Sprintf("-%s must be a number of at least %d: %s", name, least, c.value(name)))
	}
	return n, nil
}

// side opens a subtree: a path in this session, or host:port/path. The caller must call end.
func (c *call) side(ctx context.Context, arg string) (side subtree.Side, end func(), err error) {
	if strings.HasPrefix(arg, "/") || !strings.ContainsAny(arg, ":,") {
		return subtree.Side{ZK: c.zk, Path: arg, Connect: c.host}, func() {}, checkPath(arg)
	}
	servers, path, err := client.ParseServers(arg)
	if err != nil {
		return side, nil, usageError(printable.Error(err))
	}
	path = cmp.Or(path, "/")
	cfg := client.Config{
		Servers: servers, SessionTimeout: c.settings.timeout, Auths: c.auths,
	}
	zk, err := c.settings.security.Connect(ctx, cfg) // credentials must not be sent in the clear if the session uses TLS
	if err != nil {
		return side, nil, failure(printable.Error(err))
	}
	end = func() { _ = zk.Close() } // after an error the session expires
	return subtree.Side{ZK: zk, Path: path, Connect: strings.Join(servers, ",")}, end, nil
}

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

// kinds asks the server that zk is connected to which znodes are containers and which have a TTL.
// If the server does not say, kinds prints the reason and returns nil: ZooKeeper cannot say, and
// gozkd does only if its whitelist contains the word kind. connect is the connect string of zk.
func (c *call) kinds(ctx context.Context, zk *client.Client, connect string) subtree.Kinds {
	_, chroot, _ := client.ParseServers(connect) // zk is connected, so it is valid
	kinds, err := probe.Asker{Timeout: c.settings.timeout, Dial: c.settings.security.Dial}.Kinds(ctx, zk.Session().Server, chroot)
	why := "the server does not tell them apart"
	switch {
	case err == nil:
		return kinds
	case errors.Is(err, probe.ErrNotAllowed):
		why = "add kind to 4lw.commands.whitelist, so that the server tells them apart"
	case !errors.Is(err, probe.ErrNoAnswer):
		why = err.Error()
	}
	c.say(c.err, "Containers and TTL znodes are treated as persistent: "+why)
	return nil
}
