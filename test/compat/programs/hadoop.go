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

// configure writes a configuration: the keys into each of the XML files, and log4j.properties.
func (h *hadoop) configure(name string, keys map[string]string, sites ...string) {
	var xml strings.Builder
	xml.WriteString("<configuration>\n")
	for key, value := range keys {
		fmt.Fprintf(&xml, "<property><name>%s</name><value>%s</value></property>\n", key, value)
	}
	xml.WriteString("</configuration>\n")
	must.Do(os.MkdirAll(h.conf(name), 0o755))
	for _, site := range sites {
		must.Do(os.WriteFile(filepath.Join(h.conf(name), site), []byte(xml.String()), 0o644))
	}
	h.world.configure("hadoop/log4j.properties", filepath.Join(filepath.Base(h.conf(name)), "log4j.properties"), nil)
}

// conf returns the directory of a configuration.
func (h *hadoop) conf(name string) string { return filepath.Join(h.dir, "conf-"+name) }

// on returns the command that runs a class with a configuration.
func (h *hadoop) on(name, class string, args ...string) *exec.Cmd {
	program := h.javaProgram
	program.classPath = h.conf(name) + string(filepath.ListSeparator) + program.classPath
	return program.command(h.world, class, args...)
}
