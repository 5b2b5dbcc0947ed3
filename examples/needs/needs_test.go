package main

import (
	"os"
	"regexp"
	"testing"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
)

func TestMain(m *testing.M) { recipetest.Main(m) }

// TestGuide compares the programs of the guide's pages with the functions that the examples run.
func TestGuide(t *testing.T) {
	const pages = "../../docs/guide/recipes/"
	program := regexp.MustCompile("(?s)```go\n(package main\n.*?)```")
	name := regexp.MustCompile(`(?m)^func \w+\(\)`)
	files := map[string]string{
		"one-at-a-time.md": "mutex.go", "one-leader.md": "leader.go", "work-queue.md": "work.go",
		"know-who-is-there.md": "presence.go", "configuration-that-updates-itself.md": "config.go",
	}
	if found, err := os.ReadDir(pages); err != nil || len(found) != len(files) {
		t.Errorf("%s has %d pages, not %d; error: %v", pages, len(found), len(files), err)
	}
	for page, file := range files {
		text, err := os.ReadFile(pages + page)
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want := name.ReplaceAllString(string(data), "func main()")
		if got := program.FindSubmatch(text); got == nil || string(got[1]) != want {
			t.Errorf("the program of docs/guide/recipes/%s differs from %s, which is tested", page, file)
		}
	}
}

// run runs a program with the address of a server.
func run(program func()) {
	address, stop := recipetest.StartServer()
	defer stop()
	defer func(args []string) { os.Args = args }(os.Args)
	os.Args = []string{"program", address}
	program()
}

func Example_oneAtATime() {
	run(oneAtATime)
	// Output:
	// no other process is here
	// unlocked <nil>
}

func Example_oneLeader() {
	run(oneLeader)
	// Output:
	// leads <nil>
	// resigned <nil>
}

func Example_workQueue() {
	run(workQueue)
	// Output:
	// fetches https://example.org
}

func Example_whoIsThere() {
	run(whoIsThere)
	// Output:
	// host-7 at 10.0.0.7:8080
	// left <nil>
}

func Example_configuration() {
	run(configuration)
	// Output:
	// defaults
	// size=3
	// ended <nil>
}
