package config

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
)

// members reads the dynamic configuration file and the server lines. One line is a standalone server, whose client
// address is used as ZooKeeper does; more are an ensemble.
func (r *resolver) members(c *Config) {
	if w, ok := r.won["dynamicConfigFile"]; ok && w.value != "" {
		r.dynamicFile(w.value)
	}
	var lines []won
	for _, name := range r.order {
		if strings.HasPrefix(name, "server.") {
			lines = append(lines, r.won[name])
		}
	}
	if len(lines) > 1 {
		r.problem(lines[1].from, lines[1].key, "is the second of %d servers: this version runs one server alone; the ensemble comes later", len(lines))
		return
	}
	if len(lines) == 1 {
		r.soleMember(c, lines[0])
	}
}

// dynamicFile adds the lines of a dynamic configuration file, which may hold nothing but members.
func (r *resolver) dynamicFile(path string) {
	for _, p := range r.readFile(path) {
		from := Origin{Source: path, Line: p.line, layer: fromFile}
		switch {
		case p.key == "version":
		case strings.HasPrefix(p.key, "server."), strings.HasPrefix(p.key, "group."), strings.HasPrefix(p.key, "weight."):
			r.set(setting{key: p.key, value: p.value, from: from})
		default:
			r.problem(from, p.key, "does not belong in a dynamic configuration file; allowed: server.N, group.N, weight.N, version")
		}
	}
}

// soleMember takes the client address of the one server line: server.N=host:port:port[:role];[host:]port.
// Source: spec section 13.2; ZooKeeper QuorumPeerConfig.setupClientPort.
func (r *resolver) soleMember(c *Config, line won) {
	bad := func(what string) {
		r.problem(line.from, line.key, "is %q: %s; allowed: host:port:port[:participant][;[host:]port]", line.value, what)
	}
	if _, err := strconv.ParseUint(strings.TrimPrefix(line.canonical, "server."), 10, 63); err != nil {
		bad("the server's id is not a number")
		return
	}
	quorum, client, hasClient := strings.Cut(line.value, ";")
	for address := range strings.SplitSeq(quorum, "|") {
		fields := splitAddress(trim(address))
		if len(fields) == 4 && strings.EqualFold(fields[3], "observer") {
			bad("an observer needs an ensemble, which comes later")
			return
		}
		if len(fields) == 4 && strings.EqualFold(fields[3], "participant") {
			fields = fields[:3]
		}
		if len(fields) != 2 && len(fields) != 3 || fields[0] == "" || slices.ContainsFunc(fields[1:], notPort) {
			bad("the address for other servers can't be read")
			return
		}
	}
	if !hasClient {
		return
	}
	client, secure, hasSecure := strings.Cut(client, ";")
	if hasSecure && trim(secure) != "" {
		bad("there is no TLS yet for a secure client port")
		return
	}
	fields := splitAddress(trim(client))
	hostname, port := "", fields[len(fields)-1]
	if len(fields) == 2 {
		hostname = fields[0]
	}
	if len(fields) > 2 || notPort(port) {
		bad("the client address can't be read")
		return
	}
	if hostname == "0.0.0.0" {
		hostname = "" // ZooKeeper's word for all addresses, IPv6 included
	}
	n, _ := strconv.Atoi(port) // it is a port
	switch set := r.won["clientPort"]; {
	case set.from.layer > line.from.layer:
		return
	case set.from.layer == line.from.layer && c.ClientPort != n:
		r.problem(line.from, line.key, "has client port %d, but clientPort is %d at %s", n, c.ClientPort, set.from)
		return
	}
	c.ClientPort = n
	if r.won["clientPortAddress"].from.layer <= line.from.layer && hostname != "" {
		c.ClientPortAddress = hostname
	}
}

// splitAddress splits at colons, except inside the brackets of an IPv6 address, which go.
func splitAddress(s string) []string {
	if inner, ok := strings.CutPrefix(s, "["); ok {
		if ip, rest, ok := strings.Cut(inner, "]"); ok && net.ParseIP(ip) != nil && strings.HasPrefix(rest, ":") {
			return append([]string{ip}, strings.Split(rest[1:], ":")...)
		}
	}
	return strings.Split(s, ":")
}

func notPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err != nil || n == 0
}

// myid checks the file that names this server within an ensemble. A standalone server needs none; one that can't
// be read is a mistake today and a wrong server tomorrow.
func (r *resolver) myid(path string) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		r.problem(Origin{Source: path}, "", "can't be read: %v", err)
		return
	}
	line, _, _ := strings.Cut(string(data), "\n")
	if _, err := strconv.ParseInt(trim(line), 10, 64); err != nil {
		r.problem(Origin{Source: path, Line: 1}, "", "is %q; allowed: the number of this server", trim(line))
	}
}
