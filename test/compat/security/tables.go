package security

import (
	_ "embed" // tables.txt
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/internal/testkit/must"
)

//go:embed tables.txt
var tablesText string

// table is a configuration, and the acts of clients on a server with that configuration.
type table struct {
	name string
	keys map[string]string // of zoo.cfg; JAAS stands for the path of the JAAS file
	rows []row
}

// row is the acts of some connections.
type row struct {
	name string
	acts []string
}

// readTables reads tables, line by line:
//
//	rows GROUP          the rows that follow belong to no table
//	table NAME
//	key NAME=VALUE      a line of zoo.cfg
//	use GROUP [N]       the rows of a group, or the first N
//	NAME => ACTS        a row, continued by lines that begin with a tab
//
// Acts are separated by " | ". Each row begins with a connection.
//
//	XID REQUEST         a request as in diff/exchange/words.go, whose reply is awaited
//	reply               another reply is awaited
//	login ACT           see conn.login
//	connect             another client
//	again               another connection, which resumes the session
func readTables(text string) (tables []*table) {
	groups := make(map[string]*table)
	var t *table
	for line := range strings.Lines(strings.ReplaceAll(text, "\n\t", " ")) {
		line = strings.TrimSuffix(line, "\n")
		word, rest, _ := strings.Cut(line, " ")
		name, acts, isRow := strings.Cut(line, " => ")
		switch {
		case line == "" || line[0] == '#':
		case isRow:
			t.rows = append(t.rows, row{name, strings.Split(acts, " | ")})
		case word == "rows":
			t = new(table)
			groups[rest] = t
		case word == "table":
			t = &table{name: rest, keys: make(map[string]string)}
			tables = append(tables, t)
		case word == "key":
			key, value, _ := strings.Cut(rest, "=")
			t.keys[key] = value
		case word == "use":
			group, first, some := strings.Cut(rest, " ")
			rows := groups[group].rows
			if some {
				rows = rows[:must.Get(strconv.Atoi(first))]
			}
			t.rows = append(t.rows, rows...)
		default:
			must.Failf("tables.txt: unexpected %q", line)
		}
	}
	return tables
}

// allowed are the rows that may differ.
var allowed = map[string]string{
	"digest, nc=00000002": onlyOnce,
	"digest, nc=1":        onlyOnce,
	"digest, nc=":         onlyOnce,
	`digest, username=""`: "the refusal of an empty name has an answer",
	"no provider, login of bob with bob-secret":     "whoAmI names the user without an authProvider, too",
	"session requires sasl without provider, start": "sessionRequireClientSASLAuth needs no authProvider",
	"no section, start":                             "a JAAS section that is named in the configuration must exist",
}

const onlyOnce = "a nonce is used once, and the client must say so"
