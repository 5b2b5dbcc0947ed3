package server

import (
	"bufio"
	"os"
	"os/user"
	"runtime"
	"runtime/debug"
)

// writeEnvironment answers envi. The keys are those of a JVM; each says what is closest to the truth for a Go program,
// and nothing where there is no such thing. What the system does not tell is empty too.
func (s *Server) writeEnvironment(w *bufio.Writer) {
	line := func(key, value string) { say(w, "%s=%s\n", key, value) }
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
	say(w, "Environment:\n")
	line("zookeeper.version", s.versionLine()) // first: kazoo takes the server's version from here, after one read
	line("host.name", or(os.Hostname()))
	line("java.version", runtime.Version())
	line("java.vendor", "The Go Authors")
	line("java.home", "")
	line("java.class.path", or(os.Executable()))
	line("java.library.path", "")
	line("java.io.tmpdir", os.TempDir())
	line("java.compiler", runtime.Compiler)
	line("os.name", name)
	line("os.arch", runtime.GOARCH)
	line("os.version", release)
	line("user.name", me.Username)
	line("user.home", me.HomeDir)
	line("user.dir", or(os.Getwd()))
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	heap := m.HeapSys - m.HeapReleased
	megabytes := func(key string, n uint64) { say(w, "%s=%dMB\n", key, n>>20) }
	megabytes("os.memory.free", heap-m.HeapInuse)
	megabytes("os.memory.max", uint64(debug.SetMemoryLimit(-1))) // -1 asks; without a limit it is what Java has then, 2⁶³-1
	megabytes("os.memory.total", heap)
}
