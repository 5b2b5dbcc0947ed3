package shell

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

func runClose(_ context.Context, c *call) error {
	c.close()
	return nil
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

// historyLines is the number of lines that history lists, itself included.
const historyLines = 11

func runHistory(_ context.Context, c *call) error {
	type line struct {
		Number int    `json:"number"`
		Line   string `json:"line"`
	}
	list := []line{}
	var text strings.Builder
	for i := max(0, len(c.history)-historyLines); i < len(c.history); i++ {
		list = append(list, line{i, c.history[i]})
		fmt.Fprintf(&text, "%d - %s\n", i, c.history[i])
	}
	if err := c.print(list, text.String()); err != nil {
		return err
	}
	return c.stillConnected()
}

func runRedo(ctx context.Context, c *call) error {
	if len(c.args) == 0 {
		return errUsage
	}
	i, err := strconv.Atoi(c.args[0])
	if err != nil {
		return usageError(c.args[0] + " is not a number")
	}
	if i < 0 || i >= len(c.history)-1 {
		return failure("Command index out of range")
	}
	line := c.history[i]
	words := split(line)
	if len(words) == 0 || words[0] == "redo" {
		return failure("No redoing redos")
	}
	c.history[len(c.history)-1] = line
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
		c.printWatches.Store(c.args[0] == "on")
		return c.stillConnected()
	}
	on := c.printWatches.Load()
	text := "printwatches is " + map[bool]string{true: "on", false: "off"}[on] + "\n"
	if err := c.print(map[string]bool{"printwatches": on}, text); err != nil {
		return err
	}
	return c.stillConnected()
}

// stillConnected is zkCli.sh's error after a command that needs no session, without a session.
func (s *Shell) stillConnected() error {
	if s.singleCommand || s.connected() {
		return nil
	}
	return errNotConnected
}

func runHelp(_ context.Context, c *call) error {
	if len(c.args) == 0 {
		var text strings.Builder
		for _, each := range c.commands {
			fmt.Fprintf(&text, "%-22s %s\n", each.name, each.about)
		}
		return c.print(jsonHelp(c.commands), text.String())
	}
	each := c.find(c.args[0])
	if each == nil {
		return c.unknownCommand(c.args[0])
	}
	usage := strings.TrimSpace(each.name + " " + each.args)
	return c.print(jsonHelp([]*command{each}), usage+"\n"+each.about+"\n"+each.flagHelp())
}

type jsonCommand struct {
	Name  string     `json:"name"`
	Args  string     `json:"args"`
	About string     `json:"about"`
	Flags []jsonFlag `json:"flags"`
}

type jsonFlag struct {
	Name  string `json:"name"` // with its dash
	Value bool   `json:"value"`
	About string `json:"about"`
}

func jsonHelp(commands []*command) []jsonCommand {
	list := []jsonCommand{}
	for _, c := range commands {
		j := jsonCommand{c.name, c.args, c.about, []jsonFlag{}}
		for _, f := range c.flags {
			j.Flags = append(j.Flags, jsonFlag{"-" + f.name, f.value, f.about})
		}
		list = append(list, j)
	}
	return list
}
