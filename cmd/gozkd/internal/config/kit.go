package config

import (
	"fmt"
	"path/filepath"
)

// MaxEnsemble is how many servers may run in one process.
const MaxEnsemble = 9

// Kit reports whether the servers are for tests: an ensemble in this process, or servers that faults can be done to.
func (inv *Invocation) Kit() bool { return inv.Ensemble > 0 || inv.Faults }

// Members returns how many servers run in this process.
func (inv *Invocation) Members() int { return max(inv.Ensemble, 1) }

// kitDefaults are the defaults of keys where they are others than a server's that is not for tests.
var kitDefaults = []struct{ key, value string }{
	{"clientPortAddress", "127.0.0.1"},
	{"tickTime", "500"}, // elections take a fraction of it, and a session can't last less than two
	{"maxSessionTimeout", "3600000"},
	{"maxClientCnxns", "0"},
	{"4lw.commands.whitelist", "*"},
}

// kit adds these defaults below all that was set, and refuses who the servers are if that was set: it returns false then.
func (r *resolver) kit(inv *Invocation) bool {
	for _, d := range kitDefaults {
		if _, set := r.won[d.key]; !set {
			r.set(setting{key: d.key, value: d.value, from: Origin{Source: "a default of servers for tests", layer: fromNowhere}})
		}
	}
	before := len(r.problems)
	if lines := r.serverLines(); len(lines) > 0 {
		r.unfit(inv, "%s is set (%s), and servers for tests find each other in this process: take out all server lines", lines[0].key, lines[0].from)
	}
	if w, ok := r.won["myid"]; ok {
		r.unfit(inv, "%s is %s (%s), and servers for tests are numbered from 1: take it out", w.key, w.value, w.from)
	}
	return len(r.problems) == before
}

// kitConfig refuses what does not fit in the resolved Config.
func (r *resolver) kitConfig(inv *Invocation) {
	c := &inv.Config
	if inv.Ensemble > 1 {
		r.ensembleKeys(c)
	}
	if c.MyID != 0 {
		r.unfit(inv, "%s says that this is server %d, and servers for tests are numbered from 1: take another directory", filepath.Join(c.DataDir, "myid"), c.MyID)
	}
	last := c.ClientPort + inv.Members() - 1
	switch {
	case c.ClientPort == 0:
	case last > 65535:
		r.unfit(inv, "clientPort is %d, so the client ports are up to %d: set it to 0, or to %d at most", c.ClientPort, last, 65536-inv.Members())
	case inv.Faults && c.ClientPort <= inv.FaultsPort && inv.FaultsPort <= last:
		r.problem(Origin{Source: "--faults-port", layer: fromFlags}, "", "is %d, which is a client port, as those are %d to %d: set one of them to 0, or further away", inv.FaultsPort, c.ClientPort, last)
	}
}

// unfit adds a problem of the flag that asks for servers for tests with something else.
func (r *resolver) unfit(inv *Invocation, format string, args ...any) {
	flag, value := "--faults-port", inv.FaultsPort
	if inv.Ensemble > 0 {
		flag, value = "--ensemble", inv.Ensemble
	}
	r.problem(Origin{Source: flag, layer: fromFlags}, "", "is %d, but %s, or leave out %s", value, fmt.Sprintf(format, args...), flag)
}
