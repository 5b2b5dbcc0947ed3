package cases

import "fmt"

// Compare prints the lines in which gozkd differs from ZooKeeper, or with all every line, and
// returns the number of lines that differ, and of those that differ as intended says. intended may
// be nil.
func Compare(zooKeeper, gozkd []string, all bool, intended func(zooKeeper, gozkd string) bool) (differ, asIntended int) {
	at := func(lines []string, i int) string {
		if i < len(lines) {
			return lines[i]
		}
		return ""
	}
	for i := range max(len(zooKeeper), len(gozkd)) {
		z, g := at(zooKeeper, i), at(gozkd, i)
		switch {
		case z == g && all:
			fmt.Printf("%3d    %s\n", i+1, z)
		case z != g && intended != nil && intended(z, g):
			asIntended++
			if all {
				fmt.Printf("%3d ZK %s\n    go %s (as intended)\n", i+1, z, g)
			}
		case z != g:
			differ++
			fmt.Printf("%3d ZK %s\n    go %s\n", i+1, z, g)
		}
	}
	return differ, asIntended
}
