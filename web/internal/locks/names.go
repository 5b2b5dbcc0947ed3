package locks

import (
	"regexp"
	"strings"

	"github.com/gozkd/gozkd/internal/sequence"
)

// role is the part in a lock that a contender's name asks for.
type role int

const (
	noRole role = iota
	exclusive
	reader
	writer
	leader
	lease
)

// A label is the part of a name between the random part and the number.
type label struct {
	role
	layout string
}

// labels are those of the recipes that this package knows, without a dash at the end.
var labels = map[string]label{
	"lock":            {exclusive, "Curator mutex or leader selector"},
	"latch":           {leader, "Curator leader latch"},
	"lease":           {lease, "Curator semaphore"},
	"__READ__":        {reader, "Curator read/write lock"},
	"__WRIT__":        {writer, "Curator read/write lock"},
	"__lock__":        {exclusive, "kazoo lock or election"},
	"__rlock__":       {reader, "kazoo read/write lock"},
	"read":            {reader, "ZooKeeper's recipe of a read/write lock"},
	"write":           {writer, "ZooKeeper's recipe of a read/write lock"},
	"n":               {leader, "ZooKeeper's recipe of an election"},
	"x":               {exclusive, "ZooKeeper's recipe of a lock"},
	"leader_election": {leader, "ClickHouse election"},
	"host":            {leader, "gozkd rendezvous"},
}

var (
	// The prefix of Curator's protected znodes; the GUID of go-zookeeper has no dashes.
	protected = regexp.MustCompile(`^_c_[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}-`)
	// The GUID at the start of kazoo's znodes.
	hexID    = regexp.MustCompile(`^[0-9a-f]{32}`)
	onlyHex  = regexp.MustCompile(`^[0-9a-f]{32}$`)
	solr     = regexp.MustCompile(`^[0-9]+-.+-n_$`)             // SESSION-CORE-n_
	javaLock = regexp.MustCompile(`^x-(0x)?-?[0-9a-fA-F]{6,}$`) // x-SESSION
)

type name struct {
	id     string // the random part of a protected znode, or ""
	number int32
	label
}

// parse returns ok only for names of recipes that this package knows.
func parse(text string) (n name, ok bool) {
	number, rest, ok := sequence.Parse(text)
	if !ok {
		return name{}, false
	}
	n.number = number
	if solr.MatchString(rest) {
		n.label = label{leader, "Solr election"}
		return n, true
	}
	if n.id = protected.FindString(rest); n.id == "" {
		n.id = hexID.FindString(rest)
	}
	word := strings.Trim(rest[len(n.id):], "-")
	if n.id == "" {
		word = strings.TrimSuffix(word, "_")
		if javaLock.MatchString(word) {
			word = "x"
		}
	}
	n.label, ok = labels[word]
	return n, ok
}

// Candidate returns the parent of a znode, and whether the znode's name may be that of a contender.
func Candidate(path string) (dir string, ok bool) {
	i := strings.LastIndexByte(path, '/')
	if i <= 0 {
		return "", false
	}
	_, ok = parse(path[i+1:])
	return path[:i], ok || onlyHex.MatchString(path[i+1:])
}
