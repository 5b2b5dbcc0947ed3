package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/internal/serverlist"
)

// identity is the number of this server, as far as it is known.
type identity struct {
	id    int64
	from  Origin
	key   string // the key as written; empty for the file myid
	known bool
	// path of the file myid; empty if all data is in memory
	file string
	// wrong is set after a problem was added.
	wrong bool
}

// identity determines the number of this server: the key myid, or the file myid in the data
// directory, as in ZooKeeper. Both must agree. A standalone server needs neither, but an unreadable
// file is a problem in any case.
func (r *resolver) identity(c *Config) identity {
	var me identity
	if w, ok := r.won["myid"]; ok {
		me = identity{id: int64(c.MyID), from: w.from, key: w.key, known: true, wrong: c.MyID == 0}
	}
	if c.DataDir == "" {
		return me
	}
	me.file = filepath.Join(c.DataDir, "myid")
	data, err := os.ReadFile(me.file)
	if errors.Is(err, fs.ErrNotExist) {
		return me
	}
	from := Origin{Source: me.file, Line: 1}
	if err != nil {
		r.unreadable(me.file, err)
		me.wrong = true
		return me
	}
	text, _, _ := strings.Cut(string(data), "\n")
	id, err := strconv.ParseInt(trim(text), 10, 64)
	switch {
	case err != nil:
		r.problem(from, "", "is %q; allowed: the number of this server", trim(text))
		me.wrong = true
	case me.known && !me.wrong && me.id != id && me.from.layer > fromImage:
		r.problem(me.from, me.key, "is %d, but %s contains %d: the data belongs to server %d; correct one of them", me.id, me.file, id, id)
		me.wrong = true
	case !me.known, me.from.layer == fromImage:
		me.id, me.from, me.key, me.known = id, from, "", true
		if id >= 1 && id <= serverlist.MaxID {
			c.MyID = uint64(id)
		}
	}
	return me
}

// check reports whether a server line has the number, and adds a problem if not. first is the first
// server line.
func (me identity) check(r *resolver, first won, set serverlist.Set) bool {
	if me.wrong {
		return false
	}
	if !me.known {
		where := "into " + me.file + ", or set "
		if me.file == "" {
			where = "into "
		}
		r.problem(first.from, first.key, "is one of %d servers, and the number of this one is not configured: write it %smyid in zoo.cfg, --id or ZOO_MY_ID", len(set), where)
		return false
	}
	if me.id < 1 || me.id > serverlist.MaxID {
		r.problem(me.from, me.key, "is %d; allowed in an ensemble: the number of a server line, 1 to %d", me.id, serverlist.MaxID)
		return false
	}
	if _, ok := set.Get(uint64(me.id)); !ok {
		var keys []string
		for _, m := range set {
			keys = append(keys, m.Key())
		}
		r.problem(me.from, me.key, "is %d, but the servers are %s: add this one at %s, or correct the number", me.id, strings.Join(keys, ", "), first.from)
		return false
	}
	return true
}
