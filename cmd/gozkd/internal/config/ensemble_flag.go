package config

import (
	"fmt"
	"path/filepath"

	"github.com/gozkd/gozkd/internal/memberdir"
)

// MaxEnsemble is the largest value of --ensemble.
const MaxEnsemble = memberdir.MaxMembers

// ensembleDefaults replace the defaults of these keys for an ensemble in one process.
var ensembleDefaults = []struct{ key, value string }{
	{"clientPortAddress", "127.0.0.1"},
	{"tickTime", "500"}, // elections take a fraction of a tick, and sessions last two ticks at least
	{"maxSessionTimeout", "3600000"},
	{"maxClientCnxns", "0"},
	{"4lw.commands.whitelist", "*"},
}

// ensembleFlag adds the defaults of --ensemble below all other settings. It returns false if
// settings identify this server as a member of another ensemble, which is a problem.
func (r *resolver) ensembleFlag(inv *Invocation) bool {
	for _, d := range ensembleDefaults {
		if _, set := r.won[d.key]; !set {
			r.set(setting{key: d.key, value: d.value, from: Origin{Source: "a default of --ensemble", layer: fromNowhere}})
		}
	}
	before := len(r.problems)
	if lines := r.serverLines(); len(lines) > 0 {
		r.conflict(inv, "%s is set (%s), and the members of --ensemble find each other in this process: remove all server lines", lines[0].key, lines[0].from)
	}
	if w, ok := r.won["myid"]; ok {
		r.conflict(inv, "%s is %s (%s), and the members of --ensemble are numbered from 1: remove it", w.key, w.value, w.from)
	}
	return len(r.problems) == before
}

// checkEnsemble refuses an ensemble that the resolved Config does not allow.
func (r *resolver) checkEnsemble(inv *Invocation) {
	c := &inv.Config
	if inv.Ensemble > 1 {
		r.ensembleKeys(c)
	}
	if c.MyID != 0 {
		r.conflict(inv, "%s says that this is server %d, and the members of --ensemble are numbered from 1: use another directory", filepath.Join(c.DataDir, "myid"), c.MyID)
	}
	if last := c.ClientPort + inv.Ensemble - 1; c.ClientPort != 0 && last > 65535 {
		r.conflict(inv, "clientPort is %d, so the client ports are up to %d: set it to 0, or to %d at most", c.ClientPort, last, 65536-inv.Ensemble)
	}
}

// conflict adds the problem that --ensemble and another setting exclude each other.
func (r *resolver) conflict(inv *Invocation, format string, args ...any) {
	r.problem(Origin{Source: "--ensemble", layer: fromFlags}, "", "is %d, but %s, or omit --ensemble", inv.Ensemble, fmt.Sprintf(format, args...))
}
