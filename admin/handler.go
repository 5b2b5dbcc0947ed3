package admin

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/gozkd/gozkd/server"
)

// Handler returns the admin commands of s: GET /commands is a list of links, GET /commands/<name> the answer to one, as a JSON object.
// Under another path it is mounted with http.StripPrefix.
//
// The object always has the keys command and error, which is null, or says what is wrong. The status is 404 for an unknown
// command, 503 while s does not serve clients, such as before it was started and after it was closed, and otherwise 200.
//
// There is no authentication. Everybody who reaches the handler can read paths, addresses and session ids, and reset counters; nobody can
// read or change the data of znodes.
func Handler(s *server.Server) http.Handler { return handler{s} }

type handler struct{ server *server.Server }

// root is where the commands are, as in ZooKeeper unless it is told otherwise.
const root = "/commands"

func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, ok := strings.CutPrefix(r.URL.Path, root)
	if !ok || name != "" && name[0] != '/' {
		http.NotFound(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "only GET is allowed", http.StatusMethodNotAllowed)
		return
	}
	switch name {
	case "":
		writeList(w, "commands/")
	case "/":
		writeList(w, "")
	default:
		status, answer := h.run(name[1:], r)
		writeJSON(w, status, answer)
	}
}

// notServing is ZooKeeper's text.
const notServing = "This ZooKeeper instance is not currently serving requests"

// run returns the answer to a command. As in ZooKeeper, a command that was not run is called what the client called it.
func (h handler) run(name string, r *http.Request) (status int, answer object) {
	c, ok := find(name)
	if !ok {
		return http.StatusNotFound, object{{"command", name}, {"error", "Unknown command: " + name}}
	}
	if err := h.server.NotServing(); err != nil && !c.always {
		return http.StatusServiceUnavailable, object{{"command", name}, {"error", fmt.Sprintf("%s: %v", notServing, err)}}
	}
	answer, err := c.run(h.server, r)
	if err != nil {
		return http.StatusOK, object{{"command", c.name}, {"error", err.Error()}}
	}
	return http.StatusOK, append(answer, field{"command", c.name}, field{"error", nil})
}

// writeList writes links to all commands, relative so that they hold wherever the handler is mounted.
func writeList(w http.ResponseWriter, folder string) {
	var b strings.Builder
	for _, c := range commands {
		fmt.Fprintf(&b, "<a href=\"%s%s\">%s</a>\n<br/>\n", folder, c.name, c.name)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, b.String()) // an error says that the client left
}

func writeJSON(w http.ResponseWriter, status int, answer object) {
	b, err := json.MarshalIndent(answer, "", "  ")
	if err != nil { // a value that JSON has no form for
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n')) // an error says that the client left
}
