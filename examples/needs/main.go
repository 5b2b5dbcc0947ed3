// Command needs contains the complete programs of the pages in docs/guide/recipes:
//
//	go run ./examples/needs PROGRAM SERVER...
//
// Each file has the text of a page, apart from the name of its main function.
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
