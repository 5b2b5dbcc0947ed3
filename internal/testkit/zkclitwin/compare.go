// Package zkclitwin compares the output of gozkd cli for a script with that of zkCli.sh 3.9.5: the
// recorded output, or that of a running zkCli.sh.
package zkclitwin

import (
	_ "embed" // for the script
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// cliScript is run by both zkCli.sh and gozkd cli. "# name" begins a case; ADDRESS is the server's.
// It leaves no znode behind, and uses sync to wait for events, which come from another thread.
//
//go:embed testdata/cli.script
var cliScript string

// Recorded is the normalized output of zkCli.sh 3.9.5 for Script on a ZooKeeper 3.9.5, for tests
// without Java.
//
//go:embed testdata/zkcli-3.9.5.txt
var Recorded string

// Result is the outcome of a case: a part of the script. Err has the lines whose outputs differ.
type Result struct {
	Name string
	Err  error
}

// markLine is a command after each line of the script. Both shells' output for it, in a session,
// marks the end of the line's output.
const markLine = "stat /mark-%d"

var markPattern = regexp.MustCompile(`(?m)^Node does not exist: /mark-(\d+)\n`)

// Script returns the lines for a shell on the server at addr, each followed by a mark.
func Script(addr string) string {
	var b strings.Builder
	for i, l := range scriptLines(cliScript) {
		fmt.Fprintf(&b, "%s\n"+markLine+"\n", strings.ReplaceAll(l.text, "ADDRESS", addr), i)
	}
	return b.String()
}

// scriptLine is a line of the script and its case.
type scriptLine struct{ name, text string }

func scriptLines(script string) []scriptLine {
	var lines []scriptLine
	name := ""
	for text := range strings.Lines(script) {
		text = strings.TrimSuffix(text, "\n")
		if after, ok := strings.CutPrefix(text, "# "); ok {
			name = after
			continue
		}
		lines = append(lines, scriptLine{name, text})
	}
	return lines
}

// piece is the output between two marks: of a line, or of several where no session answered the
// mark.
type piece struct {
	until  int // number of the last of its lines
	output string
}

// pieces splits an output at the marks.
func pieces(output string, lines int) []piece {
	var list []piece
	from := 0
	for _, m := range markPattern.FindAllStringSubmatchIndex(output, -1) {
		n, err := strconv.Atoi(output[m[2]:m[3]])
		if err != nil {
			continue // the script has no such mark
		}
		list = append(list, piece{n, output[from:m[0]]})
		from = m[1]
	}
	return append(list, piece{lines - 1, output[from:]})
}

// Compare compares the outputs of zkCli.sh and gozkd cli for Script: a result for each case, and
// one for the events.
func Compare(theirs, ours string) []Result {
	theirs, theirEvents := withoutEvents(Normalize(theirs))
	ours, ourEvents := withoutEvents(Normalize(ours))
	lines := scriptLines(cliScript)
	a, b := pieces(theirs, len(lines)), pieces(ours, len(lines))
	usages := usagesIn(a, lines)

	var results []Result
	at := map[string]int{}
	for _, l := range lines {
		if _, ok := at[l.name]; !ok {
			at[l.name] = len(results)
			results = append(results, Result{Name: l.name})
		}
	}
	fail := func(name string, err error) {
		r := &results[at[name]]
		if r.Err == nil {
			r.Err = err
			return
		}
		r.Err = fmt.Errorf("%w\n%w", r.Err, err)
	}
	first := 0
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i].until != b[i].until {
			fail(lines[first].name, fmt.Errorf("%q: the shells lose or find their sessions at different lines", lines[first].text))
			break
		}
		if err := compareOutputs(lines[first:a[i].until+1], a[i].output, b[i].output, usages); err != nil {
			fail(lines[first].name, err)
		}
		first = a[i].until + 1
	}
	events := Result{Name: "events"}
	if got, want := strings.Join(ourEvents, "\n"), strings.Join(theirEvents, "\n"); got != want {
		events.Err = fmt.Errorf("events: got %v, want %v", got, want)
	}
	return append(results, events)
}

// compareOutputs compares the outputs of some lines. gozkd cli prints a command's usage after every
// complaint about its arguments, and has more commands.
func compareOutputs(lines []scriptLine, theirs, ours string, usages map[string]string) error {
	ours = dropOwnCommands(ours, theirs)
	if ours == theirs {
		return nil
	}
	word, _, _ := strings.Cut(lines[0].text, " ")
	if usage := usages[word]; len(lines) == 1 && usage != "" && theirs != "" && ours == theirs+usage {
		return nil
	}
	text := lines[0].text
	if len(lines) > 1 {
		text += " ... " + lines[len(lines)-1].text
	}
	return fmt.Errorf("%s\n    zkCli.sh:  %q\n    gozkd cli: %q", text, theirs, ours)
}

// usagesIn returns the usage of each command, from the list after an unknown command, and from the
// output of a line with only the command where that is longer.
func usagesIn(list []piece, lines []scriptLine) map[string]string {
	usages := map[string]string{}
	for _, p := range list {
		if !strings.HasPrefix(p.output, listHeader) {
			continue
		}
		for l := range strings.Lines(p.output) {
			if l, ok := strings.CutPrefix(l, "\t"); ok {
				word, _, _ := strings.Cut(l, " ")
				usages[word] = l
			}
		}
	}
	for _, p := range list {
		if usage, ok := usages[lines[p.until].text]; ok && strings.HasPrefix(p.output, usage) {
			usages[lines[p.until].text] = p.output
		}
	}
	return usages
}

const listHeader = "ZooKeeper -server host:port"

// dropOwnCommands removes the commands that only gozkd cli has from the list.
func dropOwnCommands(ours, theirs string) string {
	if !strings.Contains(theirs, listHeader) {
		return ours
	}
	var b strings.Builder
	for l := range strings.Lines(ours) {
		if !strings.HasPrefix(l, "\t") || strings.Contains(theirs, l) {
			b.WriteString(l)
		}
	}
	return b.String()
}

// bound holds patterns of text that differs between two runs of the script.
var bound = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`(?m)^([cm]time = ).*$`), "${1}TIME"},
	{regexp.MustCompile(`(?m)^([cmp]Zxid = 0x)[0-9a-f]+$`), "${1}ZXID"},
	{regexp.MustCompile(`(?m)(^WatchedEvent .* zxid: )\d+$`), "${1}ZXID"},
	{regexp.MustCompile(`(?m)^(ephemeralOwner = 0x)[1-9a-f][0-9a-f]+$`), "${1}SESSION"},
	{regexp.MustCompile(`(?m)^(ZooKeeper CLI version: ).*$`), "${1}VERSION"},
	// zkCli.sh reports here that it has no line editor.
	{regexp.MustCompile(`(?m)^JLine support is disabled\n`), ""},
	{regexp.MustCompile(`(?m)^(Connecting to ).*$`), "${1}ADDRESS"},
	{regexp.MustCompile(`(?m)^(\d+ - connect )[^/]*`), "${1}ADDRESS"},
}

// Normalize replaces such text, and sorts the output of whoami, which has no order.
func Normalize(output string) string {
	for _, b := range bound {
		output = b.pattern.ReplaceAllString(output, b.with)
	}
	return whoAmI.ReplaceAllStringFunc(output, func(s string) string {
		head, rest, _ := strings.Cut(s, "\n")
		ids := strings.SplitAfter(strings.TrimSuffix(rest, "\n"), "\n")
		ids[len(ids)-1] += "\n"
		slices.Sort(ids)
		return head + "\n" + strings.Join(ids, "")
	})
}

var whoAmI = regexp.MustCompile(`(?m)^Auth scheme: User\n(?:\w+: .*\n)+`)

// zkCli.sh prints an event in two parts from a thread of its own: other output may come between.
var (
	eventHead = regexp.MustCompile(`\nWATCHER::\n`)
	eventLine = regexp.MustCompile(`\nWatchedEvent (.*)\n`)

	unorderedEvent = regexp.MustCompile(`WatchRemoved|type:None`)
)

// withoutEvents removes the events from an output. Events about removed watches come in no order,
// nor do those of sessions that follow each other: each session of zkCli.sh has a thread for its
// events. That the last session has closed, zkCli.sh may say or not, because it ends meanwhile.
func withoutEvents(output string) (rest string, events []string) {
	rest = eventHead.ReplaceAllString(output, "")
	for _, m := range eventLine.FindAllStringSubmatch(rest, -1) {
		events = append(events, m[1])
	}
	if n := len(events); n > 0 && strings.HasPrefix(events[n-1], "state:Closed ") {
		events = events[:n-1]
	}
	unordered := func(e string) string { return unorderedEvent.FindString(e) }
	for i := 0; i < len(events); {
		end := i + 1
		for kind := unordered(events[i]); kind != "" && end < len(events) && unordered(events[end]) == kind; {
			end++
		}
		slices.Sort(events[i:end])
		i = end
	}
	return eventLine.ReplaceAllString(rest, ""), events
}
