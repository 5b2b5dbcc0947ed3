package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// guideBlock is an indented or fenced block of a page, below a heading.
type guideBlock struct {
	heading  string
	language string // of a fenced block
	lines    []string
}

func (b guideBlock) text() string { return strings.Join(b.lines, "\n") + "\n" }

// guideCommand is a command of a page, with the lines that it prints.
type guideCommand struct {
	line string
	want []string
}

// commands returns the commands of a block, which begin with $, none if it has none.
func (b guideBlock) commands() (all []guideCommand) {
	for _, line := range b.lines {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			all = append(all, guideCommand{line: command})
		} else if len(all) > 0 {
			last := &all[len(all)-1]
			last.want = append(last.want, line)
		}
	}
	return all
}

// readGuide returns the blocks of a page, whose path is relative to docs/guide, with each line as
// adapt returns it.
func readGuide(t *testing.T, page string, adapt func(line string) string) (blocks []guideBlock) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "..", "docs", "guide", page))
	if err != nil {
		t.Fatal(err)
	}
	heading, indent, inside, fenced := "", "", false, false
	for _, line := range strings.Split(string(content), "\n") {
		text := strings.TrimLeft(line, " ")
		language, fence := strings.CutPrefix(text, "```")
		switch begins := !inside && len(line)-len(text) >= 4; {
		case fence:
			inside, fenced = !fenced, !fenced
			if fenced {
				indent, blocks = "", append(blocks, guideBlock{heading: heading, language: language})
			}
			continue
		case !inside && strings.HasPrefix(line, "#"):
			heading = strings.TrimLeft(line, "# ")
		case begins:
			indent, inside = line[:len(line)-len(text)], true
			blocks = append(blocks, guideBlock{heading: heading})
		}
		rest, ok := strings.CutPrefix(line, indent)
		if inside = inside && ok; inside {
			b := &blocks[len(blocks)-1]
			b.lines = append(b.lines, adapt(rest))
		}
	}
	return blocks
}

// outputPattern returns a pattern of the output of a command, in which … stands for any text, and a
// line of … for any lines.
func outputPattern(lines []string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString("^")
	for _, line := range lines {
		line = generalize(line)
		if line == "…\n" || line == "…" {
			b.WriteString(`(?:.*\n)*`)
			continue
		}
		b.WriteString(strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*"))
		b.WriteString(`\n`)
	}
	b.WriteString("$")
	return regexp.MustCompile(b.String())
}

// differs are parts of outputs that are different each time.
var differs = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?`), "TIME"},
	{regexp.MustCompile(`0x[0-9a-f]+`), "HEX"},
	{regexp.MustCompile(`127\.0\.0\.1:[3-6]\d{4}`), "CLIENT"},
	{regexp.MustCompile(`"xid":\d+`), "XID"},
	{regexp.MustCompile(`\b(term|index|committed up to) \d+`), "$1 N"}, // more if an attempt was given up
	// Of gozkd status only the server, a role, the number of links and that it has a version
	// matter.
	{regexp.MustCompile(`(?:leader|follower) +HEX +\d+ +\d+ +[\d./]+ +\d+ +3\S+`), "SERVES"},
	{regexp.MustCompile(` +`), " "},
	{regexp.MustCompile(` +(\n|$)`), "$1"},
}

func generalize(text string) string {
	for _, d := range differs {
		text = d.pattern.ReplaceAllString(text, d.with)
	}
	return text
}
