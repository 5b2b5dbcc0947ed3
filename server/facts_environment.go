package server

import (
	"os"
	"os/user"
	"runtime"
	"runtime/debug"
	"strconv"

	"github.com/gozkd/gozkd/server/facts"
)

// Environment returns the lines of the envi word. The keys are those of a JVM. Each value is the
// closest equivalent for a Go program, or empty if there is none or the system does not tell.
func (f *Facts) Environment() []facts.Setting {
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
		{Key: "zookeeper.version", Value: f.versionLine()}, // first: kazoo reads once and takes the server's version from here
		{Key: "host.name", Value: or(os.Hostname())},
		{Key: "java.version", Value: runtime.Version()},
		{Key: "java.vendor", Value: "The Go Authors"},
		{Key: "java.home", Value: ""},
		{Key: "java.class.path", Value: or(os.Executable())},
		{Key: "java.library.path", Value: ""},
		{Key: "java.io.tmpdir", Value: os.TempDir()},
		{Key: "java.compiler", Value: runtime.Compiler},
		{Key: "os.name", Value: name},
		{Key: "os.arch", Value: runtime.GOARCH},
		{Key: "os.version", Value: release},
		{Key: "user.name", Value: me.Username},
		{Key: "user.home", Value: me.HomeDir},
		{Key: "user.dir", Value: or(os.Getwd())},
		{Key: "os.memory.free", Value: megabytes(heap - m.HeapInuse)},
		// -1 asks. Without a limit the answer is 2⁶³-1, as Java's is then.
		{Key: "os.memory.max", Value: megabytes(uint64(debug.SetMemoryLimit(-1)))},
		{Key: "os.memory.total", Value: megabytes(heap)},
	}
}
