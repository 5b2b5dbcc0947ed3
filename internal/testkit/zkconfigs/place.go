// Package zkconfigs makes zoo.cfg files of other deployments usable on this machine.
package zkconfigs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// Placed is another deployment's configuration, made usable on this machine.
type Placed struct {
	// File is the path of the zoo.cfg, and Dir the directory of all files.
	File, Dir string
	// ClientPorts are those that this server opens for clients.
	ClientPorts []int
}

var (
	placedSetting = regexp.MustCompile(`^(\s*)([A-Za-z0-9_.*-]+)(\s*[=:]\s*)(.*?)(\s*)$`)
	placedHost    = regexp.MustCompile(`\b[A-Za-z0-9.-]+\.example\b`)
	placedPort    = regexp.MustCompile(`[:;]\d+(\.\d+)*`) // a port, or an address
	placedNumber  = regexp.MustCompile(`^\d+$`)
)

// Place writes a configuration into dir, and creates the directories that it names and the file
// myid with the number of the first server line. Absolute paths move below dir, hosts below the
// domain example become addresses of this machine, the first one 127.0.0.1, and each port becomes
// one that port returns. The admin server and the endpoint for Prometheus get a port even if the
// configuration leaves theirs to the default. files returns the content of a file that the
// configuration names, or nil for none.
func Place(text, dir string, port func() int, files func(key, path string) []byte) Placed {
	p := Placed{Dir: dir, File: filepath.Join(dir, "zoo.cfg")}
	w := &placer{Placed: &p, port: port, files: files, ports: make(map[string]int)}
	out := w.lines(text)
	keys := w.keys
	if !slices.Contains(keys, "admin.serverPort") {
		out += fmt.Sprintf("admin.serverPort=%d\n", w.replace("8080"))
	}
	if strings.Contains(text, "PrometheusMetricsProvider") && !slices.Contains(keys, "metricsProvider.httpPort") {
		out += fmt.Sprintf("metricsProvider.httpPort=%d\n", w.replace("7000"))
	}
	if w.dataDir != "" && w.myid != "" {
		write(filepath.Join(w.dataDir, "myid"), []byte(w.myid+"\n"))
	}
	write(p.File, []byte(out))
	return p
}

type placer struct {
	*Placed
	port          func() int
	files         func(key, path string) []byte
	ports         map[string]int
	hosts, keys   []string
	dataDir, myid string
}

func write(path string, content []byte) {
	must.Do(os.MkdirAll(filepath.Dir(path), 0o755))
	must.Do(os.WriteFile(path, content, 0o600))
}

// replace returns the port that stands for a port of the original.
func (w *placer) replace(port string) int {
	if w.ports[port] == 0 {
		w.ports[port] = w.port()
	}
	return w.ports[port]
}

// lines translates the lines of a file.
func (w *placer) lines(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		m := placedSetting.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
		if m == nil || strings.HasPrefix(strings.TrimSpace(line), "#") {
			out.WriteString(line)
			continue
		}
		out.WriteString(m[1] + m[2] + m[3] + w.value(m[2], m[4]) + m[5] + "\n")
	}
	return out.String()
}

// value translates the value of a key.
func (w *placer) value(key, value string) string {
	w.keys = append(w.keys, key)
	value = placedHost.ReplaceAllStringFunc(value, func(host string) string {
		i := slices.Index(w.hosts, host)
		if i < 0 {
			i, w.hosts = len(w.hosts), append(w.hosts, host)
		}
		return "127.0.0." + strconv.Itoa(i+1)
	})
	switch id, isServer := strings.CutPrefix(key, "server."); {
	case isServer && placedNumber.MatchString(id):
		if w.myid == "" {
			w.myid = id
		}
		value = placedPort.ReplaceAllStringFunc(value, func(p string) string {
			if strings.Contains(p, ".") {
				return p
			}
			return p[:1] + strconv.Itoa(w.replace(p[1:]))
		})
		if port, err := strconv.Atoi(value[strings.LastIndexAny(value, ":;")+1:]); err == nil && id == w.myid && strings.Contains(value, ";") {
			w.ClientPorts = append(w.ClientPorts, port)
		}
		return value
	case strings.HasSuffix(strings.ToLower(key), "port") && placedNumber.MatchString(value) && value != "0":
		port := w.replace(value)
		if key == "clientPort" || key == "secureClientPort" {
			w.ClientPorts = append(w.ClientPorts, port)
		}
		return strconv.Itoa(port)
	case !strings.HasPrefix(value, "/") || key == "admin.commandURL":
		return value
	}
	path := filepath.Join(w.Dir, filepath.FromSlash(value))
	switch key {
	case "dataDir":
		w.dataDir = path
		fallthrough
	case "dataLogDir":
		must.Do(os.MkdirAll(path, 0o755))
	default:
		if content := w.files(key, value); content != nil {
			if key == "dynamicConfigFile" {
				content = []byte(w.lines(string(content)))
			}
			write(path, content)
		}
	}
	return filepath.ToSlash(path)
}
