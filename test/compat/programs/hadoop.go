package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// hadoop is a program from Maven whose configurations are directories of class paths with keys in
// XML.
type hadoop struct {
	javaProgram
	*world
}

const logging = `log4j.rootLogger=WARN,out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{ISO8601} %-5p [%t:%c{1}] - %m%n
`

// configure writes a configuration: the keys into each of the XML files, and log4j.properties.
func (h *hadoop) configure(name string, keys map[string]string, sites ...string) {
	var xml strings.Builder
	xml.WriteString("<configuration>\n")
	for key, value := range keys {
		fmt.Fprintf(&xml, "<property><name>%s</name><value>%s</value></property>\n", key, value)
	}
	xml.WriteString("</configuration>\n")
	files := map[string]string{"log4j.properties": logging}
	for _, site := range sites {
		files[site] = xml.String()
	}
	must.Do(os.MkdirAll(h.conf(name), 0o755))
	for file, text := range files {
		must.Do(os.WriteFile(filepath.Join(h.conf(name), file), []byte(text), 0o644))
	}
}

// conf returns the directory of a configuration.
func (h *hadoop) conf(name string) string { return filepath.Join(h.dir, "conf-"+name) }

// on returns the command that runs a class with a configuration.
func (h *hadoop) on(name, class string, args ...string) *exec.Cmd {
	program := h.javaProgram
	program.classPath = h.conf(name) + string(filepath.ListSeparator) + program.classPath
	return program.command(h.world, class, args...)
}
