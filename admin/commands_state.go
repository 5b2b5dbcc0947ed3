package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gozkd/gozkd/internal/printable"
	"github.com/gozkd/gozkd/server"
)

// snapshotPatience is for each part of a snapshot. Meanwhile the copy takes room on the disk.
const snapshotPatience = time.Minute

const maxBody = 64 << 10

// snapshot streams a backup. As in ZooKeeper, two headers, written exactly as here, describe it.
// With streaming=false they are the answer: a snapshot can be made, and how long it would be.
func (h *handler) snapshot(w http.ResponseWriter, r *http.Request) {
	refuse := func(status int, why any, more ...field) {
		writeJSON(w, status, append(object{{"command", "snapshot"}, {"error", why}}, more...))
	}
	if !h.options.Snapshot {
		refuse(http.StatusServiceUnavailable, "the command is disabled")
		return
	}
	// Making a backup may take longer than the program allows for other answers. An error says that
	// there is no such limit, as in tests.
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Time{})
	if h.taken != nil {
		if left, _ := h.taken.Take("", time.Now()); left > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(busyError(left).seconds()))
			refuse(http.StatusTooManyRequests, fmt.Sprintf("there was a snapshot less than %v ago: ask another server, or again in %v",
				h.options.Interval, left.Round(time.Second)))
			return
		}
	}
	sent := false // otherwise there was no snapshot
	defer func() {
		if !sent && h.taken != nil {
			h.taken.Give("", time.Now())
		}
	}()
	b, err := h.server.Backups().Make(r.Context())
	_ = control.SetWriteDeadline(time.Now().Add(snapshotPatience))
	switch {
	case errors.Is(err, server.ErrNoLeader), errors.Is(err, server.ErrClosed):
		refuse(http.StatusServiceUnavailable, notServing, field{"reason", printable.Error(err)})
		return
	case errors.Is(err, server.ErrStandby):
		refuse(http.StatusServiceUnavailable, printable.Error(err))
		return
	case err != nil:
		refuse(http.StatusInternalServerError, printable.Error(err))
		return
	}
	defer b.Close() //nolint:errcheck // what remains is removed at the next start
	header := w.Header()
	header["last_zxid"], header["snapshot_size"] = []string{fmt.Sprintf("0x%x", b.Zxid)}, []string{strconv.FormatInt(b.Size, 10)}
	if streaming := r.URL.Query().Get("streaming"); streaming != "" && !strings.EqualFold(streaming, "true") {
		refuse(http.StatusOK, nil)
		sent = true
		return
	}
	header.Set("Content-Type", "application/octet-stream")
	header.Set("Content-Length", strconv.FormatInt(b.Size, 10))
	w.WriteHeader(http.StatusOK)
	// A client that gets less than the length knows that the snapshot is incomplete.
	sent = r.Method == http.MethodHead || copySnapshot(w, control, b)
}

// copySnapshot reports whether all was written.
func copySnapshot(w io.Writer, control *http.ResponseController, from io.Reader) bool {
	for {
		_ = control.SetWriteDeadline(time.Now().Add(snapshotPatience))
		if _, err := io.CopyN(w, from, 1<<20); err != nil {
			return errors.Is(err, io.EOF)
		}
	}
}

// restore always refuses. ZooKeeper replaces the state of a single server, and the operator must do
// the same on all other servers, with no client and no write in between. Here the state belongs to
// the whole ensemble: the state of a member must not differ from the log, and the state of all must
// not go back while clients hold sessions, locks and versions of a later state.
func restore(*handler, *http.Request) (object, error) {
	return nil, &failedError{http.StatusServiceUnavailable,
		"a running server is not restored: stop it and found a new ensemble on the snapshot with gozkd restore"}
}

// shed closes connections. Keys and texts are those of ZooKeeper 3.10.
func shed(h *handler, r *http.Request) (object, error) {
	if !h.options.Shed {
		return nil, &failedError{http.StatusServiceUnavailable, "the command is disabled"}
	}
	bad := func(why string) (object, error) { return nil, &failedError{http.StatusBadRequest, why} }
	body, err := io.ReadAll(r.Body) // ServeHTTP bounds it
	switch {
	case err != nil:
		return bad("Invalid JSON or failed to read request body")
	case len(body) == 0:
		return bad("Request body is required")
	}
	var given struct {
		Percentage *int `json:"percentage"`
	}
	switch err := json.Unmarshal(body, &given); {
	case err != nil:
		return bad("Invalid JSON or failed to read request body: " + err.Error())
	case given.Percentage == nil:
		return bad("Missing required parameter: percentage")
	case *given.Percentage < 0 || *given.Percentage > 100:
		return bad("Percentage must be between 0 and 100")
	}
	return object{{"percentage_requested", *given.Percentage}, {"connections_shed", h.server.ShedConnections(*given.Percentage)}}, nil
}

// lastSnapshot answers as ZooKeeper does: the zxid in hexadecimal without 0x, the time in seconds;
// both are -1 if there is none.
func lastSnapshot(h *handler, _ *http.Request) (object, error) {
	zxid, seconds := int64(-1), int64(-1)
	if last, at, ok := h.server.Backups().LastSnapshot(); ok {
		zxid, seconds = last, at.Unix()
	}
	return object{{"zxid", strconv.FormatUint(uint64(zxid), 16)}, {"timestamp", seconds}}, nil
}

func hot(s *server.Facts) object {
	spots := s.Hot()
	return object{{"paths", spots.Paths}, {"clients", spots.Clients}, {"window_s", spots.Window}}
}

func reload(h *handler, _ *http.Request) (object, error) { return nil, h.options.Reload() }

// initialConfiguration answers with the text of the file that the program started with, or null.
func initialConfiguration(h *handler, _ *http.Request) (object, error) {
	if h.options.InitialConfiguration == "" {
		return object{{"initial_configuration", nil}}, nil
	}
	return object{{"initial_configuration", withoutSecrets(h.options.InitialConfiguration)}}, nil
}

// withoutSecrets hides the values of secret keys in a text in the format of java.util.Properties:
// key and value are separated by =, : or white space, and a backslash at the end of a line
// continues it. withoutSecrets also hides values in comments, and those of keys with escapes.
func withoutSecrets(text string) string {
	var b strings.Builder
	hiding := false // the line continues a hidden value
	for line := range strings.Lines(text) {
		bare := strings.TrimRight(line, "\r\n")
		goesOn := (len(bare)-len(strings.TrimRight(bare, "\\")))%2 == 1
		if hiding {
			hiding = goesOn
			continue
		}
		comment := strings.IndexAny(strings.TrimLeft(bare, " \t\f"), "#!") == 0
		goesOn = goesOn && !comment
		start := len(bare) - len(strings.TrimLeft(bare, " \t\f#!"))
		end := start + strings.IndexAny(bare[start:], "=: \t\f\\")
		if end >= start && (secret(bare[start:end]) || bare[end] == '\\' && !comment) {
			b.WriteString(bare[:end] + "=" + hidden + "\n")
			hiding = goesOn
			continue
		}
		b.WriteString(line)
	}
	return b.String()
}

// systemProperties answers with the settings that the program was given as -D.
func systemProperties(h *handler, _ *http.Request) (answer object, _ error) {
	properties := make(map[string]string)
	for _, p := range h.options.Properties {
		if secret(p.Key) && p.Value != "" {
			p.Value = hidden
		}
		properties[p.Key] = p.Value
	}
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		answer = append(answer, field{key, properties[key]})
	}
	return answer, nil
}

const hidden = "***"

// secret reports whether the value of a key must not be shown: the handler does not authenticate
// its readers. gozkd.web.roles has hashes of passwords.
func secret(key string) bool {
	key = strings.ToLower(key)
	return slices.ContainsFunc([]string{"passw", "secret", "superdigest", "token", "web.roles"}, func(part string) bool { return strings.Contains(key, part) })
}
