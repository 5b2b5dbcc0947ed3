package admin_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/gozkd/gozkd/admin"
	"github.com/gozkd/gozkd/server"
)

// A program mounts the admin commands next to its own pages, under a path of its choice.
func ExampleHandler() {
	s, err := server.New(server.Config{})
	if err != nil {
		log.Fatal(err)
	}
	if err := s.Start(context.Background()); err != nil {
		log.Fatal(err)
	}
	defer s.Close()

	mux := http.NewServeMux()
	mux.Handle("/zookeeper/", http.StripPrefix("/zookeeper", admin.Handler(s)))
	web := httptest.NewServer(mux)
	defer web.Close()

	answer, err := http.Get(web.URL + "/zookeeper/commands/watch_summary")
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(string(text))
	// Output:
	// {
	//   "num_connections": 0,
	//   "num_paths": 0,
	//   "num_total_watches": 0,
	//   "command": "watch_summary",
	//   "error": null
	// }
}
