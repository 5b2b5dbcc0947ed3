package main

import (
	"os"
	"regexp"
	"testing"

	"github.com/gozkd/gozkd/internal/testkit/recipetest"
)

func TestMain(m *testing.M) { recipetest.Main(m) }

// TestGuide compares the programs of the guide with the functions that the examples run.
func TestGuide(t *testing.T) {
	guide, err := os.ReadFile("../../docs/guide/recipes.md")
	if err != nil {
		t.Fatal(err)
	}
	programs := regexp.MustCompile("(?s)```go\n(package main\n.*?)```").FindAllSubmatch(guide, -1)
	files := []string{"mutex.go", "leader.go", "work.go", "presence.go", "config.go"}
	if len(programs) != len(files) {
		t.Fatalf("the guide has %d programs, not %d", len(programs), len(files))
	}
	name := regexp.MustCompile(`(?m)^func \w+\(\)`)
	for i, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want := name.ReplaceAllString(string(data), "func main()")
		if got := string(programs[i][1]); got != want {
			t.Errorf("program %d of docs/guide/recipes.md differs from %s, which is tested:\n%s", i+1, file, got)
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
