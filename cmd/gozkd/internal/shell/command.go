package shell

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/gozkd/gozkd/proto"
)

type command struct {
	name string
	// args follows the name in the usage.
	args  string
	flags []flag
	// oneOf allows at most one of the flags; needsFlag requires a flag.
	oneOf, needsFlag bool
	// minArgs is the number of required arguments.
	minArgs int
	// explains makes the usage list the flags and their meaning.
	explains bool
	// about describes the command in help.
	about string
	// raw commands have no flags: all words are arguments.
	raw bool
	// lines is set if --output json prints a value per item found instead of a value per command.
	lines bool
	// offline commands need no session.
	offline bool
	// run executes the command. After a usageError the shell prints the usage.
	run func(ctx context.Context, c *call) error
}

// flag is a flag of a command, "-name" or "-name value".
type flag struct {
	name  string
	value bool
	about string // "": no message lists it
}

// usage returns the usage line, such as "get [-s] path". If the command explains its flags, their
// help follows. There is no final newline after the usage line.
func (c *command) usage() string {
	line := c.name + " " + c.args
	if !c.explains {
		return line
	}
	return line + "\n" + c.flagHelp()
}

// flagHelp returns a line per flag, in the order and layout of the commons-cli library.
func (c *command) flagHelp() string {
	flags := slices.Clone(c.flags)
	sort.SliceStable(flags, func(i, j int) bool { return strings.ToLower(flags[i].name) < strings.ToLower(flags[j].name) })
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	for _, f := range flags {
		if f.about == "" {
			continue
		}
		value := map[bool]string{true: " <arg>"}[f.value]
		fmt.Fprintf(table, " -%s%s\t%s\n", f.name, value, f.about)
	}
	_ = table.Flush() // a Builder takes everything
	return b.String()
}

type call struct {
	*Shell
	command *command
	args    []string // without the name and the flags
	given   []givenFlag
}

func (c *call) has(name string) bool {
	return slices.ContainsFunc(c.given, func(g givenFlag) bool { return g.name == name })
}

// value returns the value of a flag, the first value if the flag was repeated, or "".
func (c *call) value(name string) string {
	if i := slices.IndexFunc(c.given, func(g givenFlag) bool { return g.name == name }); i >= 0 {
		return c.given[i].value
	}
	return ""
}

func (c *call) wantedStat(st proto.Stat) *stat {
	if !c.has("s") {
		return nil
	}
	return c.stat(st)
}

func (c *call) showStat(path string, st proto.Stat) error {
	if !c.has("s") {
		return nil
	}
	return c.printStat(path, st)
}

type givenFlag struct{ name, value string }

// parse separates the words after a command's name into flags and arguments, by the rules of
// commons-cli's DefaultParser, which zkCli.sh uses: flags may stand anywhere, "--" ends them, "-sw"
// means "-s -w", and "-v3" and "-v=3" mean "-v 3". A word that begins with a dash is a flag, unless
// the previous flag needs a value and the word is not a known flag.
//
// An error has zkCli.sh's message, including the name of commons-cli's exception.
func (c *command) parse(words []string) (args []string, given []givenFlag, err error) {
	p := flagParser{command: c, ended: c.raw}
	for _, w := range words {
		if err := p.word(w); err != nil {
			return nil, nil, err
		}
	}
	return p.args, p.given, p.finish()
}

type flagParser struct {
	command *command
	args    []string
	given   []givenFlag
	waiting bool // the last flag of given needs a value
	ended   bool // all further words are arguments: after "--"
}

func (p *flagParser) word(w string) error {
	switch {
	case p.ended:
		p.args = append(p.args, w)
	case w == "--":
		p.ended = true
	case p.waiting && !p.looksLikeFlag(w):
		p.setValue(unquote(w))
	case strings.HasPrefix(w, "--"):
		if f, ok := p.find(w[1:]); ok { // such as --data; zkCli.sh has no such flags
			return p.add(f)
		}
		return unrecognized(w)
	case len(w) > 1 && w[0] == '-':
		return p.flags(w)
	default:
		p.args = append(p.args, w)
	}
	return nil
}

func (p *flagParser) flags(w string) error {
	name, value, hasValue := strings.Cut(w[1:], "=")
	if hasValue {
		if f, ok := p.find(name); ok && f.value && len(name) == 1 {
			if err := p.add(f); err != nil {
				return err
			}
			p.setValue(value)
			return nil
		}
		// commons-cli accepts "=" only after names of one letter.
		return unrecognized(w)
	}
	if f, ok := p.find(name); ok {
		return p.add(f)
	}
	for i, letter := range name {
		f, ok := p.find(string(letter))
		if !ok {
			return unrecognized(w)
		}
		if err := p.add(f); err != nil {
			return err
		}
		if rest := name[i+len(string(letter)):]; p.waiting && rest != "" {
			p.setValue(rest)
			return nil
		}
	}
	return nil
}

func (p *flagParser) add(f flag) error {
	if err := p.needsNoValue(); err != nil {
		return err
	}
	if p.command.oneOf && len(p.given) > 0 && p.given[0].name != f.name {
		return parseError("AlreadySelectedException", fmt.Sprintf("The option '%s' was specified but an option from this group has already been selected: '%s'", f.name, p.given[0].name))
	}
	p.given = append(p.given, givenFlag{name: f.name})
	p.waiting = f.value
	return nil
}

func (p *flagParser) setValue(v string) {
	p.given[len(p.given)-1].value = v
	p.waiting = false
}

func (p *flagParser) finish() error {
	if err := p.needsNoValue(); err != nil {
		return err
	}
	if p.command.needsFlag && len(p.given) == 0 {
		var list []string
		for _, f := range p.command.flags {
			if f.about != "" {
				list = append(list, "-"+f.name+" "+f.about)
			}
		}
		return parseError("MissingOptionException", "Missing required option: ["+strings.Join(list, ", ")+"]")
	}
	if len(p.args) < p.command.minArgs {
		return errUsage
	}
	return nil
}

func (p *flagParser) needsNoValue() error {
	if !p.waiting {
		return nil
	}
	return parseError("MissingArgumentException", "Missing argument for option: "+p.given[len(p.given)-1].name)
}

func (p *flagParser) find(name string) (flag, bool) {
	for _, f := range p.command.flags {
		if f.name == name {
			return f, true
		}
	}
	return flag{}, false
}

// looksLikeFlag reports whether a word is no value, as it begins like a flag and is no number.
func (p *flagParser) looksLikeFlag(w string) bool {
	if len(w) < 2 || w[0] != '-' {
		return false
	}
	if _, err := strconv.ParseFloat(w, 64); err == nil {
		return false
	}
	name, _, _ := strings.Cut(w[1:], "=")
	if name == "" {
		return false
	}
	// commons-cli treats "--t" as a flag here, and rejects it later as unknown.
	if _, ok := p.find(strings.TrimPrefix(strings.TrimPrefix(name, "-"), "-")); ok {
		return true
	}
	_, ok := p.find(name[:1])
	return ok
}

// unquote removes a pair of double quotes around the value of a flag.
func unquote(v string) string {
	if len(v) > 1 && v[0] == '"' && v[len(v)-1] == '"' && !strings.Contains(v[1:len(v)-1], `"`) {
		return v[1 : len(v)-1]
	}
	return v
}

func unrecognized(w string) error {
	return parseError("UnrecognizedOptionException", "Unrecognized option: "+w)
}

// parseError is an exception of zkCli.sh's flag parser.
func parseError(exception, message string) error {
	return usageError("org.apache.commons.cli." + exception + ": " + message)
}
