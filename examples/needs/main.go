// Command needs contains the programs of docs/guide/recipes.md, complete:
//
//	go run ./examples/needs PROGRAM SERVER...
//
// A file's function is the main function of its program.
package main

import (
	"log"
	"os"
)

var programs = map[string]func(){
	"mutex": oneAtATime, "leader": oneLeader, "work": workQueue, "presence": whoIsThere, "config": configuration,
}

func main() {
	if len(os.Args) < 3 || programs[os.Args[1]] == nil {
		log.Fatal("usage: needs mutex|leader|work|presence|config SERVER...")
	}
	os.Args = os.Args[1:]
	programs[os.Args[0]]()
}
