package config

import (
	"errors"
	"io/fs"
	"os"
)

// DefaultDataDir is where data goes without a zoo.cfg, below the working directory.
const DefaultDataDir = "gozkd-data"

// Invocation is what one start of the program was asked for.
type Invocation struct {
	// Command is what to do.
	Command Command
	// Config is resolved and valid for Serve and CheckConfig, and zero for the other commands.
	Config Config
	// File is the path of the zoo.cfg that was read, or empty.
	File string
	// Ensemble is how many servers are to run in this process as an ensemble; 0: one, as Config says.
	Ensemble int
	// Faults asks for the HTTP endpoint that does harm to the servers of this process, at FaultsPort of the loopback; 0 means any
	// free port.
	Faults     bool
	FaultsPort int
	// PortFile is where to write the addresses once they are bound, or empty.
	PortFile string
	// LogLevel is trace, debug, info, warn, error or off.
	LogLevel string
	// LogJSON asks for one JSON object per log line.
	LogJSON bool
	// Warnings are settings that have no effect, each a sentence that names key, file and line.
	Warnings []string
}

// Command is what the program is to do.
type Command int

// The commands.
const (
	Serve Command = iota
	CheckConfig
	ShowHelp
	ShowVersion
)

// Load reads the command line (without the program's name), the zoo.cfg that it names, and the environment.
//
//	getenv  looks up an environment variable, as os.Getenv does
//
// It reads files and writes nothing. An error is always an *Error with every problem that was found; Warnings are
// complete then too.
func Load(args []string, getenv func(string) string) (*Invocation, error) {
	inv, fromCommandLine, problems := parseFlags(args)
	if inv.Command == ShowHelp || inv.Command == ShowVersion {
		return inv, nil // help is also for those whose other flags are wrong
	}
	if len(problems) > 0 {
		return inv, &Error{Problems: problems}
	}
	r := newResolver()
	r.environment(getenv)
	if inv.File != "" {
		r.file(inv.File)
	}
	for _, s := range fromCommandLine {
		r.set(s)
	}
	if inv.Kit() && !r.kit(inv) {
		return inv, &Error{Problems: r.problems}
	}
	inv.Config = r.resolve(inv.Config.Memory)
	if inv.Kit() {
		r.kitConfig(inv)
	}
	inv.Warnings = r.warnings
	if len(r.problems) > 0 {
		return inv, &Error{Problems: r.problems}
	}
	return inv, nil
}

// readFile reads a file of properties, or adds a problem.
func (r *resolver) readFile(path string) []property {
	data, err := os.ReadFile(path)
	if err != nil {
		r.unreadable(path, err)
		return nil
	}
	props, problems := readProperties(path, data)
	r.problems = append(r.problems, problems...)
	return props
}

// unreadable adds the problem of a file that can't be read.
func (r *resolver) unreadable(path string, err error) {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		err = pathErr.Err // the path stands in the problem already
	}
	r.problem(Origin{Source: path}, "", "can't be read: %v", err)
}
