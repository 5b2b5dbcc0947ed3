// Command overlay writes an overlay of Go's standard library for `go test -overlay`, with which a
// bubble of testing/synctest is deterministic on one processor, and prints the overlay's path. If
// the edits do not fit this release of Go, the command warns and prints nothing. With the overlay:
//
//   - select, map iteration and timers of the same moment draw from a generator of the bubble,
//   - the timers of a select join the heap of timers in the order of its cases, not in the order of
//     addresses: on the order depends when stopped timers leave the heap, and with that, whether
//     they draw again, and whether they fire at once when they are set to the present,
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
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// edit replaces the only occurrence of a text in a file of the standard library. why is the effect
// of the text that would make a repeated run differ. In another release of Go, the edit belongs to
// the code with that effect.
type edit struct{ file, why, from, to string }

// experiment is the GOEXPERIMENT with which the heap begins at the same address in each process.
const experiment = "norandomizedheapbase64"

var edits = []edit{
	{"runtime/synctest.go", "room for the bubble's generator",
		"type synctestBubble struct {\n", "type synctestBubble struct {\n\tdrawn uint64\n"},
	{"runtime/rand.go", "seeds of the process: keys of hashes and of maps made outside of bubbles",
		"\tglobalRand.state.Init(*seed)\n", "\tclear(seed[:])\n\tglobalRand.state.Init(*seed)\n"},
	{"runtime/rand.go", "seeds of maps, the order of their iteration, math/rand", "func rand() uint64 {\n", `func rand() uint64 {
	if gp := getg(); gp.bubble != nil {
		// splitmix64
		gp.bubble.drawn += 0x9e3779b97f4a7c15
		z := gp.bubble.drawn
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		return z ^ z>>31
	}
`},
	{"runtime/select.go", "which ready case a select takes",
		"j := cheaprandn(uint32(norder + 1))", "j := randn(uint32(norder + 1))"},
	{"runtime/time.go", "which of the timers of one moment fires first", "t.rand = cheaprand()", "t.rand = rand32()"},
	{"runtime/select.go", "the timers of a select join the heap in the order of their channels' addresses: in that of the cases",
		"\t\tif c.timer != nil {\n\t\t\tblockTimerChan(c)\n\t\t}\n\t}\n", `	}
	for i := range scases {
		if c := scases[i].c; c != nil && c.timer != nil {
			blockTimerChan(c)
		}
	}
`},
	{"runtime/sema.go", "a mutex that was waited for long is handed over, by the real clock",
		"func internal_sync_nanotime() int64 {\n\treturn nanotime()", "func internal_sync_nanotime() int64 {\n\treturn 0"},
	{"runtime/proc.go", "a goroutine that ran for 10 ms of real time is preempted",
		"const forcePreemptNS = 10 * 1000 * 1000 ", "const forcePreemptNS = 1 << 60 "},
	{"runtime/proc.go", "a long system call loses its processor to another goroutine",
		"\t\t// Retake the P if it's there for more than 1 sysmon tick (at least 20us).\n",
		"\t\tif thread.gp.bubble != nil {\n\t\t\tthread.resume()\n\t\t\tgoto done\n\t\t}\n"},
	{"runtime/proc.go", "each 61st goroutine comes from the global queue, counting those of the runtime itself",
		"if pp.schedtick%61 == 0 && !sched.runq.empty() {", "if false {"},
	{"context/context.go", "children of a context are keys of a map, whose order depends on addresses: number them",
		"\tchildren map[canceler]struct{}", "\tborn uint64\n\tchildren map[canceler]uint64"},
	{"context/context.go", "as above", "make(map[canceler]struct{})", "make(map[canceler]uint64)"},
	{"context/context.go", "as above", "p.children[child] = struct{}{}", "p.born++\n\t\t\tp.children[child] = p.born"},
	{"context/context.go", "as above: they end in the order of their numbers", "\tfor child := range c.children {", `	children := make([]canceler, 0, len(c.children))
	for child := range c.children {
		children = append(children, child)
	}
	slices.SortFunc(children, func(a, b canceler) int { return int(c.children[a]) - int(c.children[b]) })
	for _, child := range children {`},
	{"context/context.go", "as above", "\t\"internal/reflectlite\"\n", "\t\"internal/reflectlite\"\n\t\"slices\"\n"},
}

func main() {
	dir := flag.String("dir", ".cache/runtime", "where the overlay goes")
	flag.Parse()
	os.Exit(must.Main("overlay", nil, func() { write(must.Get(filepath.Abs(*dir))) }))
}

// write writes the overlay, and prints the path of its description.
func write(dir string) {
	knows := exec.Command("go", "env", "GOROOT")
	knows.Env = append(os.Environ(), "GOEXPERIMENT="+experiment)
	goroot, err := knows.Output()
	if err != nil {
		warn(fmt.Errorf("it may not know GOEXPERIMENT=%s: %w", experiment, err))
		return
	}
	must.Do(os.MkdirAll(dir, 0o755))
	var misfits []error
	texts := map[string]string{}
	for _, e := range edits {
		original := filepath.Join(strings.TrimSpace(string(goroot)), "src", e.file)
		if texts[original] == "" {
			b, err := os.ReadFile(original)
			if err != nil { // another release may have no such file
				misfits = append(misfits, fmt.Errorf("%w (%s)", err, e.why))
				continue
			}
			texts[original] = string(b)
		}
		if n := strings.Count(texts[original], e.from); n != 1 {
			misfits = append(misfits, fmt.Errorf("%s has %d times %q, want once (%s)", original, n, e.from, e.why))
			continue
		}
		texts[original] = strings.Replace(texts[original], e.from, e.to, 1)
	}
	if misfits != nil {
		warn(misfits...)
		return
	}
	replace := map[string]string{}
	for original, text := range texts {
		replace[original] = filepath.Join(dir, filepath.Base(original))
		must.Do(os.WriteFile(replace[original], []byte(text), 0o644))
	}
	description := filepath.Join(dir, "overlay.json")
	must.Do(os.WriteFile(description, must.Get(json.MarshalIndent(map[string]any{"Replace": replace}, "", "\t")), 0o644))
	fmt.Println(description)
}

func warn(misfits ...error) {
	fmt.Fprintf(os.Stderr, "overlay: the overlay does not fit this release of Go:\n%v\nWithout it, runs check the same, but a seed does not give the same run again. %s\n",
		errors.Join(misfits...), "See \"When Go's next version comes\" in docs/quality/how-we-test.md.")
}
