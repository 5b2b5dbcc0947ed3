package server

import (
	"bufio"
	"os"
	"os/user"
	"runtime"
	"runtime/debug"
	"strconv"
)

// Environment returns what the envi word tells. The keys are those of a JVM; each says what is closest to the truth for a Go
// program, and nothing where there is no such thing. What the system does not tell is empty too.
func (s *Server) Environment() []Setting {
	or := func(value string, err error) string {
		if err != nil {
			return ""
		}
		return value
	}
	me := user.User{}
	if u, err := user.Current(); err == nil {
		me = *u
	}
	name, release := system()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	heap := m.HeapSys - m.HeapReleased
	megabytes := func(n uint64) string { return strconv.FormatUint(n>>20, 10) + "MB" }
	return []Setting{
		{"zookeeper.version", s.versionLine()}, // first: kazoo takes the server's version from here, after one read
		{"host.name", or(os.Hostname())},
		{"java.version", runtime.Version()},
		{"java.vendor", "The Go Authors"},
		{"java.home", ""},
		{"java.class.path", or(os.Executable())},
		{"java.library.path", ""},
		{"java.io.tmpdir", os.TempDir()},
		{"java.compiler", runtime.Compiler},
		{"os.name", name},
		{"os.arch", runtime.GOARCH},
		{"os.version", release},
		{"user.name", me.Username},
		{"user.home", me.HomeDir},
		{"user.dir", or(os.Getwd())},
		{"os.memory.free", megabytes(heap - m.HeapInuse)},
		{"os.memory.max", megabytes(uint64(debug.SetMemoryLimit(-1)))}, // -1 asks; without a limit it is what Java has then, 2⁶³-1
		{"os.memory.total", megabytes(heap)},
	}
}

// writeEnvironment answers envi.
func (s *Server) writeEnvironment(w *bufio.Writer) {
	say(w, "Environment:\n")
	for _, line := range s.Environment() {
		say(w, "%s=%s\n", line.Key, line.Value)
	}
}
