package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/admintoken"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/archive/store"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/tlsconf"
	"github.com/gozkd/gozkd/internal/fourletter"
	"github.com/gozkd/gozkd/internal/secretfile"
	"github.com/gozkd/gozkd/sasl"
)

// resolver collects settings, from the lowest layer to the highest, and builds a Config.
type resolver struct {
	won        map[string]won // by canonical key
	order      []string       // in the order of their first setting
	hasFile    bool           // a zoo.cfg was read
	exposed    bool           // a setting exposes this server to others
	ownPort    bool           // the server line of this server has a client port
	warnings   []string
	properties []string // -D properties of the environment, name=value
	// flagProperties are those of the command line.
	flagProperties []string
	users          sasl.DigestUsers // of ZOO_SERVER_USERS
	problems       []Problem
	table          []key     // its fields point into the Config that resolve builds
	ofGroups       []Problem // of keys that have a group
}

// won is the effective setting of a key.
type won struct {
	setting
	row       key
	canonical string
}

// shown returns the value as messages may show it.
func (w *won) shown() string {
	switch {
	case w.row.secret && w.value != "":
		return "(hidden)"
	case w.row.kind.url:
		return store.ShownURL(w.value)
	}
	return store.ShownPath(w.value)
}

func newResolver() *resolver { return &resolver{won: make(map[string]won)} }

// firstOn returns the first of some keys that is neither missing nor 0 nor false, or the last.
func (r *resolver) firstOn(names ...string) (w won) {
	for _, name := range names {
		if w = r.won[name]; !isOff(w.value) {
			break
		}
	}
	return w
}

func isOff(value string) bool {
	return value == "" || value == "0" || strings.EqualFold(value, "false")
}

func (r *resolver) problem(from Origin, key, format string, args ...any) {
	missing := slices.ContainsFunc(args, func(a any) bool {
		err, _ := a.(error)
		return errors.Is(err, fs.ErrNotExist)
	})
	r.problems = append(r.problems, Problem{From: from, Key: key, What: fmt.Sprintf(format, args...), Missing: missing})
}

func (r *resolver) warn(from Origin, key, format string, args ...any) {
	r.warnings = append(r.warnings, fmt.Sprintf("%s: %s: %s", from, key, fmt.Sprintf(format, args...)))
}

// noEffect warns, if a key is set and is without effect. why is the rest of the sentence.
func (r *resolver) noEffect(without bool, key, why string) {
	if w, set := r.won[key]; set && without {
		r.warn(w.from, w.key, "%s has no effect%s", w.shown(), why)
	}
}

// environment adds the -D properties of SERVER_JVMFLAGS and JVMFLAGS. As in zkServer.sh, which
// starts java with $SERVER_JVMFLAGS $JVMFLAGS, the words are separated by white space and the last
// word for a property wins. Confluent's image has KAFKA_OPTS instead.
func (r *resolver) environment(c container) {
	flags := []string{"SERVER_JVMFLAGS", "JVMFLAGS"}
	if c.isConfluent() {
		flags = append([]string{"KAFKA_OPTS"}, flags...)
	}
	for _, variable := range flags {
		words, from := c.value(variable)
		for _, word := range strings.Fields(words) {
			if property, ok := strings.CutPrefix(word, "-D"); ok {
				r.properties = append(r.properties, property)
			}
			if s, ok := systemProperty(word, from); ok {
				r.set(s)
			}
		}
	}
}

// systemProperty parses -Dkey=value. ok: it is a property, and the server's.
func systemProperty(word string, from Origin) (setting, bool) {
	property, ok := strings.CutPrefix(word, "-D")
	name, value, _ := strings.Cut(property, "=")
	if !ok || name == "" {
		return setting{}, false // such as -Xmx: there is no JVM
	}
	bare, ours := strings.CutPrefix(name, "zookeeper.")
	row, canonical, known := lookup(name)
	switch {
	case isMembership(bare):
		return setting{}, false // a property of the Java client, such as zookeeper.server.principal; only files name members
	case !ours && (!known || canonical != row.name):
		return setting{}, false // a property of Java or a library, such as java.net.preferIPv4Stack
	}
	return setting{key: name, value: value, from: from}, true
}

func (r *resolver) file(path string) {
	r.hasFile = true
	for _, p := range r.readFile(path, "") {
		r.set(setting{key: p.key, value: p.value, from: Origin{Source: path, Line: p.line, layer: fromFile}})
	}
}

// scripts warns of keys that only the scripts beside zoo.cfg set, which zkServer.sh runs, if any.
func (r *resolver) scripts(file string) {
	for _, name := range []string{"java.env", "zookeeper-env.sh"} {
		path := filepath.Join(filepath.Dir(file), name)
		text, _ := os.ReadFile(path) // mostly there is none
		for i, line := range strings.Split(string(text), "\n") {
			if file == "" || strings.HasPrefix(trim(line), "#") || strings.Contains(line, "CLIENT_JVMFLAGS=") {
				continue
			}
			for word := range strings.FieldsFuncSeq(line, func(c rune) bool { return strings.ContainsRune(" \t\r\"'", c) }) {
				s, ours := systemProperty(word, Origin{Source: path, Line: i + 1})
				row, canonical, known := lookup(s.key)
				if _, set := r.won[canonical]; ours && known && !set && row.status == works {
					r.warn(s.from, s.key, "has no effect, because gozkd runs no script: set it in %s, "+
						"or in SERVER_JVMFLAGS in the environment", file)
				}
			}
		}
	}
}

// set adds a setting, which overrides the previous.
func (r *resolver) set(s setting) {
	row, canonical, ok := lookup(s.key)
	if !ok {
		hint := similar(s.key)
		if strings.HasPrefix(s.key, ";") {
			hint = "; a comment begins with #"
		}
		r.warn(s.from, s.key, "is not a key of gozkd and has no effect%s", hint)
		return
	}
	before, again := r.won[canonical]
	switch {
	case !again || before.from.layer != s.from.layer:
	case strings.HasPrefix(canonical, "server.") && s.from.layer != fromFlags:
		// NB: ZooKeeper uses the last line. A line that was copied without a new number would make
		// the ensemble smaller.
		r.problem(s.from, s.key, "is already set at %s: each server needs a different number", before.from)
	case s.from.layer == fromFile:
		r.warn(before.from, before.key, "is set again at %s, which overrides it", s.from)
	}
	if !again {
		r.order = append(r.order, canonical)
	}
	r.won[canonical] = won{setting: s, row: row, canonical: canonical}
}

// standby replaces the settings that have no effect on a standby.
func (r *resolver) standby(dir string) {
	r.order = slices.DeleteFunc(r.order, func(key string) bool {
		return isMembership(key) || slices.Contains([]string{"dataDir", "dataLogDir", "myid", "dynamicConfigFile", "standaloneEnabled"}, key)
	})
	maps.DeleteFunc(r.won, func(key string, _ won) bool { return !slices.Contains(r.order, key) })
	r.set(setting{key: "dataDir", value: dir, from: Origin{Source: "--into", layer: fromFlags}})
}

// resolve checks the effective settings and returns the Config, valid if there are no problems.
func (r *resolver) resolve(memory bool) Config {
	c := Config{Memory: memory}
	r.table = table(&c)
	for _, k := range r.table {
		if v, ok := k.kind.parse(k.def); ok && k.field != nil && k.def != "" {
			k.text().set(v)
		}
	}
	// NB: the documented defaults of these keys are words, which would be valid values.
	c.Server.LogDir, c.ClientPortAddress, c.SecureClientPortAddress, c.Audit.File = "", "", "", ""
	for _, o := range []*tlsconf.Options{&c.ClientTLS, &c.PeerTLS, &c.MetricsTLS} {
		o.Protocol, o.EnabledProtocols, o.CipherSuites = "", nil, nil
	}
	c.Server.MinSessionTimeout, c.Server.MaxSessionTimeout = -1, -1
	if !r.hasFile {
		c.Server.Dir = DefaultDataDir
	}

	for _, name := range r.order {
		r.check(name)
	}
	r.directories(&c)
	r.secret(&c)
	r.members(&c)
	r.sessionTimeouts(&c)
	c.AdminEnabled = c.AdminEnabled && c.AdminPort >= 0
	r.memory(&c)
	r.words(&c)
	r.tls(&c)
	r.peerTLS(&c)
	r.auth(&c)
	r.https(&c)
	r.identities(&c)
	r.adminToken(&c)
	r.auditFile(&c)
	return c
}

// check validates the effective setting of a key and stores it.
func (r *resolver) check(name string) {
	w := r.won[name]
	shown := w.shown()
	v, ok := w.row.kind.parse(w.value)
	if !ok && w.row.ignored(w.value) {
		r.warn(w.from, w.key, "is %q, which has no effect, as in ZooKeeper; allowed: %s", shown, w.row.kind.allowed)
		return
	}
	if !ok && w.row.kind.nearest != nil {
		if v, ok = w.row.kind.nearest(w.value); ok {
			shown = cmp.Or(shown, "empty")
			r.warn(w.from, w.key, "is %s; %s is used, because allowed is %s", shown, v, w.row.kind.allowed)
		}
	}
	if !ok {
		why, hint := "", ""
		if w.row.kind.why != nil && w.value != "" {
			why = ": " + w.row.kind.why(w.value).Error()
		}
		if strings.Contains(w.value, " #") {
			hint = " (a comment needs a line of its own)"
		}
		r.keyProblem(w, "is %q%s; allowed: %s%s", shown, why, w.row.kind.allowed, hint)
		if name != "myid" && name != "dataDir" { // these two would be missing
			delete(r.won, name) // one mistake is one problem
		}
		return
	}
	if k := w.row.kind; k.lenient && !strings.EqualFold(w.value, v) {
		r.warn(w.from, w.key, "is %q, which means %s, as in ZooKeeper; allowed: %s", shown, v, k.allowed)
	}
	fine, near := slices.Contains(w.row.fine, v), ""
	if prefix, rest := strings.CutSuffix(w.row.name, "*"); rest && w.row.status != works {
		if near = similar(w.key); !strings.Contains(near, " "+prefix) {
			near = "" // that key is of another kind
		}
	}
	switch {
	case w.row.status == harmless && near != "":
		r.warn(w.from, w.key, "is not a key of gozkd and has no effect%s", near)
	case near != "": // it may be of security
		r.keyProblem(w, "is not a key of gozkd%s", near)
	case w.row.status == refused && !fine:
		allowed := ""
		if len(w.row.fine) > 0 {
			allowed = "; allowed: " + strings.Join(w.row.fine, ", ")
		}
		r.keyProblem(w, "is %q, which this version does not support: %s%s", shown, w.row.note, allowed)
	case !fine && (w.row.status == later || len(w.row.fine) > 0):
		r.warn(w.from, w.key, "%s has no effect: %s", shown, w.row.note)
	}
	if w.row.field != nil {
		i := slices.IndexFunc(r.table, func(k key) bool { return k.name == w.row.name })
		r.table[i].text().set(v)
	}
}

// noTLS is why the keys of a group of TLS have no effect.
const noTLS = "TLS with these keys is not served"

// groupProblems reports what is wrong with the keys of a group. If the group is not in use, that is
// a warning, because ZooKeeper does not look at these keys then. why names the reason.
func (r *resolver) groupProblems(group string, used bool, why string) {
	for _, p := range r.ofGroups {
		switch {
		case p.group != group:
		case used:
			r.problems = append(r.problems, p)
		default:
			r.warn(p.From, p.Key, "%s; it has no effect, because %s", p.What, why)
		}
	}
}

// keyProblem adds a problem of a key, or leaves it to groupProblems.
func (r *resolver) keyProblem(w won, format string, args ...any) {
	if w.row.group == "" {
		r.problem(w.from, w.key, format, args...)
		return
	}
	r.ofGroups = append(r.ofGroups, Problem{From: w.from, Key: w.key, What: fmt.Sprintf(format, args...), group: w.row.group})
}

func (r *resolver) directories(c *Config) {
	switch {
	case c.Memory:
		for _, name := range []string{"dataDir", "dataLogDir"} {
			if w, ok := r.won[name]; ok {
				r.warn(w.from, w.key, "%s is not used: --memory keeps all data in memory", w.value)
			}
		}
		c.Server.Dir, c.Server.LogDir = "", ""
		return
	case c.Server.Dir == "":
		// An invalid value has been reported already, and so has a missing or unreadable zoo.cfg.
		unread := func(p Problem) bool { return p.Missing || p.Key == "" && p.From.Line == 0 }
		if _, bad := r.won["dataDir"]; !bad && !slices.ContainsFunc(r.problems, unread) {
			r.problem(Origin{}, "dataDir", "is not set: set it in zoo.cfg, or use --data-dir or --memory")
		}
		return
	}
	c.Server.LogDir = cmp.Or(c.Server.LogDir, c.Server.Dir)
	r.directory("dataDir", c.Server.Dir, c.AutoCreate)
	if c.Server.LogDir != c.Server.Dir {
		r.directory("dataLogDir", c.Server.LogDir, c.AutoCreate)
	}
}

// directory demands that a directory is no file, and exists if it must.
func (r *resolver) directory(key, dir string, autoCreate bool) {
	switch info, err := os.Stat(dir); {
	case err == nil && !info.IsDir(), errors.Is(err, syscall.ENOTDIR):
		r.problem(r.won[key].from, key, "is %s, which is a file or below one: name a directory", dir)
	case err != nil && !autoCreate:
		r.problem(r.won[key].from, key, "is %s, which cannot be used, and datadir.autocreate is false: %v", dir, err)
	}
}

// sessionTimeouts sets the defaults, which depend on tickTime, and checks the order.
func (r *resolver) sessionTimeouts(c *Config) {
	if c.Server.MinSessionTimeout < 0 {
		c.Server.MinSessionTimeout = 2 * c.Server.Tick
	}
	if c.Server.MaxSessionTimeout < 0 {
		c.Server.MaxSessionTimeout = 20 * c.Server.Tick
	}
	if c.Server.MinSessionTimeout > c.Server.MaxSessionTimeout {
		w := r.firstOn("minSessionTimeout", "maxSessionTimeout")
		r.problem(w.from, w.key, "the shortest timeout, %d ms, is more than maxSessionTimeout, which is %d ms",
			c.Server.MinSessionTimeout.Milliseconds(), c.Server.MaxSessionTimeout.Milliseconds())
	}
}

// memory checks that the longest replies and requests fit, as server.Config demands, and warns of a
// limit that a server without data reaches.
func (r *resolver) memory(c *Config) {
	if least := 8 * int64(c.Server.MaxBuffer); c.Server.ClientMemory != 0 && c.Server.ClientMemory < least {
		w := r.won["gozkd.clientMemoryKB"]
		r.problem(w.from, w.key, "is %d; allowed: 0, or at least 8 times jute.maxbuffer, which is %d", c.Server.ClientMemory>>10, (least+1023)>>10)
	}
	if w := r.won["gozkd.dataLimitKB"]; c.Server.DataLimit > 0 && c.Server.DataLimit < leastDataLimit {
		r.warn(w.from, w.key, "is %s: a server takes about 8 MiB of that without any data, and may be full at once; "+
			"set %d or more", w.value, leastDataLimit>>10)
	}
}

func (r *resolver) words(c *Config) {
	for _, word := range c.Server.Words {
		if word != "*" && !fourletter.Is(word) {
			w := r.won["4lw.commands.whitelist"]
			r.warn(w.from, w.key, "%s is not a four-letter word", strconv.Quote(word))
		}
	}
}

const (
	// minSecret is the least that the server accepts, in bytes.
	minSecret = 16
	// maxSecretFile bounds the file with the secret, and that with a token, in bytes.
	maxSecretFile = 4096
)

// secret reads the file with the secret of the ensemble.
func (r *resolver) secret(c *Config) {
	const key = "gozkd.peer.secretFile"
	if c.PeerSecretFile == "" {
		r.noEffect(true, "gozkd.peer.secretMode", ": "+key+" is not set")
		return
	}
	var err error
	if c.Server.PeerSecret, err = readSecret(c.PeerSecretFile); err != nil {
		r.problem(r.won[key].from, key, "is %s: %v", c.PeerSecretFile, err)
	}
}

// adminToken warns of a file without a token, and of a file that every user of this machine can
// read. The server reads the file at each request.
func (r *resolver) adminToken(c *Config) {
	const key = "gozkd.admin.tokenFile"
	if c.AdminTokenFile == "" || !c.AdminEnabled {
		return
	}
	if _, shared, err := admintoken.Read(c.AdminTokenFile); err != nil {
		r.warn(r.won[key].from, key, "authorizes nobody until the file holds a token: %v", err)
	} else if shared != "" {
		r.warn(r.won[key].from, key, "is %s: %s", c.AdminTokenFile, shared)
	}
}

// auditFile refuses a directory as the audit log, and warns of a name below a file.
func (r *resolver) auditFile(c *Config) {
	const key = "gozkd.audit.file"
	if file := c.AuditFile(); c.Audit.Enabled && file != "-" {
		switch info, err := os.Stat(file); {
		case err == nil && info.IsDir(): // a rotation would rename it
			r.problem(r.won[key].from, key, "is %s, which is a directory: name a file in it", file)
		case errors.Is(err, syscall.ENOTDIR):
			r.warn(r.won[key].from, key, "is %s, which is below a file: events are lost", file)
		}
	}
}

// readSecret returns a file without white space at its ends. The errors do not show its content.
func readSecret(path string) ([]byte, error) {
	b, shared, err := secretfile.Read(path, maxSecretFile)
	if err != nil {
		return nil, err
	}
	if shared != "" {
		return nil, fmt.Errorf("%s (Kubernetes: defaultMode: 0440 with fsGroup; Docker: mode: 0400)", shared)
	}
	secret := bytes.TrimSpace(b)
	if len(secret) < minSecret {
		return nil, fmt.Errorf("it holds a secret of %d bytes, the minimum is %d: make one with openssl rand -base64 32", len(secret), minSecret)
	}
	return secret, nil
}
