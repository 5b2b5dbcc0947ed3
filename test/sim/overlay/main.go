// Command overlay writes an overlay of Go's standard library for `go test -overlay`, with which a
// bubble of testing/synctest is deterministic on one processor, and prints its path:
//
//   - select, map iteration and timers of the same moment draw from a generator of the bubble,
//   - map seeds and hash keys are the same in each process,
//   - a context ends its children in the order in which they were made: they are the keys of a map,
//     whose order depends on where they are in memory, and the runtime allocates a thread when real
//     time demands it,
//   - nothing is preempted, mutexes know no starvation, and a system call keeps its processor
//     however long it takes, since all three depend on real time.
//
// See docs/quality/how-we-test.md.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// edit replaces the only occurrence of a text in a file of the standard library.
type edit struct{ file, from, to string }

var edits = []edit{
	{"runtime/synctest.go", "type synctestBubble struct {\n", "type synctestBubble struct {\n\tdrawn uint64\n"},
	{"runtime/rand.go", "\tglobalRand.state.Init(*seed)\n", "\tclear(seed[:])\n\tglobalRand.state.Init(*seed)\n"},
	{"runtime/rand.go", "func rand() uint64 {\n", `func rand() uint64 {
	if gp := getg(); gp.bubble != nil {
		// splitmix64
		gp.bubble.drawn += 0x9e3779b97f4a7c15
		z := gp.bubble.drawn
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		return z ^ z>>31
	}
`},
	{"runtime/select.go", "j := cheaprandn(uint32(norder + 1))", "j := randn(uint32(norder + 1))"},
	{"runtime/time.go", "t.rand = cheaprand()", "t.rand = rand32()"},
	{"runtime/sema.go", "func internal_sync_nanotime() int64 {\n\treturn nanotime()", "func internal_sync_nanotime() int64 {\n\treturn 0"},
	{"runtime/proc.go", "const forcePreemptNS = 10 * 1000 * 1000 ", "const forcePreemptNS = 1 << 60 "},
	{"runtime/proc.go", "\t\t// Retake the P if it's there for more than 1 sysmon tick (at least 20us).\n",
		"\t\tif thread.gp.bubble != nil {\n\t\t\tthread.resume()\n\t\t\tgoto done\n\t\t}\n"},
	{"runtime/proc.go", "if pp.schedtick%61 == 0 && !sched.runq.empty() {", "if false {"},
	{"context/context.go", "\tchildren map[canceler]struct{}", "\tborn uint64\n\tchildren map[canceler]uint64"},
	{"context/context.go", "make(map[canceler]struct{})", "make(map[canceler]uint64)"},
	{"context/context.go", "p.children[child] = struct{}{}", "p.born++\n\t\t\tp.children[child] = p.born"},
	{"context/context.go", "\tfor child := range c.children {", `	children := make([]canceler, 0, len(c.children))
	for child := range c.children {
		children = append(children, child)
	}
	slices.SortFunc(children, func(a, b canceler) int { return int(c.children[a]) - int(c.children[b]) })
	for _, child := range children {`},
	{"context/context.go", "\t\"internal/reflectlite\"\n", "\t\"internal/reflectlite\"\n\t\"slices\"\n"},
}

func main() {
	dir := flag.String("dir", ".cache/runtime", "where the overlay goes")
	flag.Parse()
	path, err := write(*dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "overlay:", err)
		os.Exit(1)
	}
	fmt.Println(path)
}

// write writes the overlay, and returns the path of its description.
func write(dir string) (string, error) {
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	texts := map[string]string{}
	for _, e := range edits {
		original := filepath.Join(strings.TrimSpace(string(goroot)), "src", e.file)
		if texts[original] == "" {
			b, err := os.ReadFile(original)
			if err != nil {
				return "", err
			}
			texts[original] = string(b)
		}
		if n := strings.Count(texts[original], e.from); n != 1 {
			return "", fmt.Errorf("%s has %d times %q, want once: adapt test/sim/overlay to this release of Go", original, n, e.from)
		}
		texts[original] = strings.Replace(texts[original], e.from, e.to, 1)
	}
	replace := map[string]string{}
	for original, text := range texts {
		replace[original] = filepath.Join(dir, filepath.Base(original))
		if err := os.WriteFile(replace[original], []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	b, err := json.MarshalIndent(map[string]any{"Replace": replace}, "", "\t")
	if err != nil {
		return "", err
	}
	description := filepath.Join(dir, "overlay.json")
	return description, os.WriteFile(description, b, 0o644)
}
