package main

import (
	"os"
	"os/exec"
	"path/filepath"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

// hadoop is a program from Maven whose configurations are directories of class paths with keys in
// XML.
type hadoop struct {
	javaProgram
	*world
}

// configure writes a configuration: the keys of a template into each of the XML files, and
// log4j.properties.
func (h *hadoop) configure(name, template string, values map[string]any, sites ...string) {
	dir := filepath.Base(h.conf(name))
	must.Do(os.MkdirAll(h.conf(name), 0o755))
	for _, site := range sites {
		h.world.configure(template, filepath.Join(dir, site), values)
	}
	h.world.configure("hadoop/log4j.properties", filepath.Join(dir, "log4j.properties"), nil)
}

// conf returns the directory of a configuration.
func (h *hadoop) conf(name string) string { return filepath.Join(h.dir, "conf-"+name) }

// on returns the command that runs a class with a configuration.
func (h *hadoop) on(name, class string, args ...string) *exec.Cmd {
	program := h.javaProgram
	program.classPath = h.conf(name) + string(filepath.ListSeparator) + program.classPath
	return program.command(h.world, class, args...)
}
