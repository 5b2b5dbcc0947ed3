package shell

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// shellCommands are those that concern the shell itself.
func shellCommands() []*command {
	return []*command{
		{name: "close", raw: true, about: "end the session", run: func(_ context.Context, c *call) error { c.close(); return nil }},
		{name: "connect", args: "host:port", raw: true, offline: true, about: "open a session, with the same servers or others", run: runConnect},
		{name: "help", args: "[command]", raw: true, offline: true, about: "list the commands, or say how one is used", run: runHelp},
		{name: "history", raw: true, offline: true, about: "list the last lines with their numbers", run: runHistory},
		{name: "printwatches", args: "on|off", raw: true, offline: true, about: "print events as they come, or not", run: runPrintWatches},
		{name: "quit", raw: true, offline: true, about: "end the session and the shell", run: runQuit},
		{name: "redo", args: "cmdno", raw: true, offline: true, about: "execute a line of the history again", run: runRedo},
	}
}

func runConnect(ctx context.Context, c *call) error {
	host := c.host
	if len(c.args) > 0 {
		host = c.args[0]
	}
	return c.connect(ctx, host)
}

func runQuit(_ context.Context, c *call) error {
	c.close()
	return errQuit
}

// historyLines is how many lines history lists, itself included.
const historyLines = 11

func runHistory(_ context.Context, c *call) error {
	list := historyResult{}
	for i := max(0, c.count-historyLines+1); i <= c.count; i++ {
		if line, ok := c.history[i]; ok {
			list = append(list, historyLine{i, line})
		}
	}
	if err := c.show(list); err != nil {
		return err
	}
	return c.stillConnected()
}

type historyLine struct {
	Number int    `json:"number"`
	Line   string `json:"line"`
}

type historyResult []historyLine

func (r historyResult) text(out, _ io.Writer) {
	for _, h := range r {
		_, _ = fmt.Fprintf(out, "%d - %s\n", h.Number, h.Line)
	}
}

func runRedo(ctx context.Context, c *call) error {
	if len(c.args) == 0 {
		return errUsage
	}
	i, err := strconv.Atoi(c.args[0])
	if err != nil {
		return usageError(c.args[0] + " is no number")
	}
	if i < 0 || i >= c.count {
		return failure("Command index out of range")
	}
	line := c.history[i]
	words := split(line)
	if len(words) == 0 || words[0] == "redo" {
		return failure("No redoing redos")
	}
	c.history[c.count] = line
	if err := c.execute(ctx, words); err != nil {
		return printed{err}
	}
	return nil
}

func runPrintWatches(_ context.Context, c *call) error {
	if len(c.args) > 0 {
		if c.args[0] != "on" && c.args[0] != "off" {
			return errUsage
		}
		c.printWatches.set(c.args[0] == "on")
		return c.stillConnected()
	}
	if err := c.show(watchesResult{c.printWatches.on()}); err != nil {
		return err
	}
	return c.stillConnected()
}

type watchesResult struct {
	On bool `json:"printwatches"`
}

func (r watchesResult) text(out, _ io.Writer) {
	state := "off"
	if r.On {
		state = "on"
	}
	_, _ = fmt.Fprintln(out, "printwatches is "+state)
}

// stillConnected is what ZooKeeper's shell says behind the commands that need no session when there is none.
func (s *Shell) stillConnected() error {
	if s.once || s.connected() {
		return nil
	}
	return errNotConnected
}

func runHelp(_ context.Context, c *call) error {
	if len(c.args) > 0 {
		if one := c.find(c.args[0]); one != nil {
			return c.show(helpResult{one})
		}
		return unknownCommand(c.args[0])
	}
	return c.show(helpResult(c.commands))
}

// helpResult is what is said of some commands: of one its flags too.
type helpResult []*command

func (r helpResult) text(out, _ io.Writer) {
	if len(r) == 1 {
		_, _ = fmt.Fprintf(out, "%s\n%s\n%s", strings.TrimSpace(r[0].name+" "+r[0].args), r[0].about, r[0].flagHelp())
		return
	}
	for _, c := range r {
		_, _ = fmt.Fprintf(out, "%-22s %s\n", c.name, c.about)
	}
}
