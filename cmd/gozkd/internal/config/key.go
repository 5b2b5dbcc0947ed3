package config

import (
	"encoding/base64"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
)

// status is the effect of a key.
type status string

const (
	works    status = ""
	harmless status = "harmless" // accepted, but has no effect
	later    status = "later"    // accepted with a warning: not supported yet
	refused  status = "refused"  // prevents the start: ignoring it would be wrong
)

type key struct {
	// name is the key in zoo.cfg. A name that ends in ".*" stands for all keys with that prefix.
	name string
	// aliases are other names, such as a system property other than "zookeeper." + name.
	aliases []string
	// kind defines the valid values.
	kind kind
	// def is the default, or empty. resolve sets the field to it if it is a valid value; otherwise,
	// as with "2 ticks", it is only for the documentation.
	def string
	// note describes the key, or why it has no effect.
	status status
	note   string
	// fine lists values of an unsupported key that are accepted silently; * is any.
	fine []string
	// group is that of a key without an effect unless the group is used: see groupProblems.
	group string
	// field points to what the key sets, in the Config of the table; nil: nothing. It is a not,
	// share or integerField if that has another value than the key.
	field any
	// reload: the key can change at runtime. Otherwise a change needs a restart.
	reload bool
	// secret keeps the value out of messages, and out of Config.String.
	secret bool
}

// row returns a key that sets a field. A change of the key needs a restart.
func row(name string, k kind, def string, field any, note string) key {
	return key{name: name, kind: k, def: def, field: field, note: note}
}

// live returns a key that sets a field and can change at runtime.
func live(name string, k kind, def string, field any, note string) key {
	return key{name: name, kind: k, def: def, field: field, note: note, reload: true}
}

// none returns a key without an effect.
func none(name string, k kind, def, note string) key {
	return key{name: name, kind: k, def: def, status: harmless, note: note}
}

func (k key) alias(names ...string) key { k.aliases = names; return k }
func (k key) of(group string) key       { k.group = group; return k }
func (k key) hidden() key               { k.secret = true; return k }

// kind defines the valid values of a key.
type kind struct {
	allowed string // completes "allowed: "
	// parse returns the canonical spelling, or false. why is nil, or says what is invalid.
	parse func(string) (string, bool)
	why   func(string) error
	words []string // of oneOf; the first word is true for a bool field
	// url: messages show of the value only what store.ShownURL returns.
	url bool
	// lenient: a text that is not equal to the word for which it is taken has a warning.
	lenient bool
	// ignores reports whether an invalid value has, as in ZooKeeper, the effect of none, with a
	// warning; nil: no value has.
	ignores func(string) bool
	// nearest returns the allowed value next to one that ZooKeeper starts with; nil: none.
	nearest func(string) (string, bool)
}

func orEmpty(k kind) kind {
	k.ignores = func(v string) bool { return v == "" }
	return k
}

// ignored reports whether ZooKeeper starts with a value as if the key were missing.
func (k *key) ignored(value string) bool {
	ours := strings.HasPrefix(k.name, "gozkd.") // no zoo.cfg of ZooKeeper has it
	return !ours && k.kind.ignores != nil && k.kind.ignores(value)
}

func noNumber(v string) bool { _, err := decode(v); return err != nil }

// integer is a decimal number from low to high.
func integer(low, high int64) kind { return number(low, high, parseDecimal) }

// property32 is a number in the form of Integer.getInteger: 0x and # are hexadecimal, 0 is octal.
func property32(low, high int64) kind {
	k := number(low, high, decode)
	k.allowed += ", decimal, 0x hexadecimal or 0 octal"
	k.ignores = noNumber
	return k
}

// orNearest32 and orNearest are property32 and integer for keys of which ZooKeeper accepts every
// number. A number out of range is replaced by the nearest allowed one, with a warning.
func orNearest32(low, high int64) kind { return property32(low, high).orNearest(low, high, decode) }

func orNearest(low, high int64) kind { return integer(low, high).orNearest(low, high, parseDecimal) }

func (k kind) orNearest(low, high int64, parse func(string) (int64, error)) kind {
	k.nearest = func(v string) (string, bool) {
		n, err := parse(v)
		return strconv.FormatInt(min(max(n, low), high), 10), err == nil && n >= -maxInt-1 && n <= maxInt
	}
	return k
}

// instead returns k with another number than the nearest allowed one, for keys of which ZooKeeper
// takes other numbers for something that is not possible here.
func (k kind) instead(number string) kind {
	nearest := k.nearest
	k.nearest = func(v string) (string, bool) {
		_, ok := nearest(v)
		return number, ok
	}
	return k
}

func number(low, high int64, parse func(string) (int64, error)) kind {
	return kind{
		allowed: fmt.Sprintf("a whole number from %d to %d", low, high),
		parse: func(v string) (string, bool) {
			n, err := parse(v)
			return strconv.FormatInt(n, 10), err == nil && n >= low && n <= high
		},
	}
}

// bound is a number of which 0 is no bound. Negative ones mean the same, as in ZooKeeper.
var bound = kind{
	allowed: "a whole number",
	parse: func(v string) (string, bool) {
		n, err := parseDecimal(v)
		return strconv.FormatInt(max(n, 0), 10), err == nil && n >= -maxInt-1 && n <= maxInt
	},
}

// sizeOrPercent is a number of KiB, or a percentage.
var sizeOrPercent = kind{
	allowed: property32(0, maxInt).allowed + ", or from 1% to 100%",
	parse: func(v string) (string, bool) {
		if number, ok := strings.CutSuffix(v, "%"); ok {
			percent, ok := integer(1, 100).parse(number)
			return percent + "%", ok
		}
		return property32(0, maxInt).parse(v)
	},
}

// fraction is a number from 0 to 1.
var fraction = kind{
	allowed: "a number from 0 to 1",
	parse: func(v string) (string, bool) {
		f, err := strconv.ParseFloat(v, 64)
		return strconv.FormatFloat(f, 'g', -1, 64), err == nil && f >= 0 && f <= 1
	},
	ignores: noNumber,
}

func parseDecimal(v string) (int64, error) { return strconv.ParseInt(v, 10, 64) }

// javaNumber matches the sign, the prefix of the base, and the digits.
var javaNumber = regexp.MustCompile(`^([-+]?)(0[xX]|#|0\B)?([0-9a-fA-F]+)$`)

// decode is java.lang.Long.decode.
func decode(v string) (int64, error) {
	m := javaNumber.FindStringSubmatch(v)
	if m == nil {
		return 0, strconv.ErrSyntax
	}
	base, known := map[string]int{"": 10, "0": 8}[m[2]]
	if !known {
		base = 16
	}
	return strconv.ParseInt(m[1]+m[3], base, 64)
}

// oneOf accepts any of the words, in any case; the canonical spelling is that of words.
func oneOf(words ...string) kind {
	return kind{
		allowed: strings.Join(words, ", "),
		words:   words,
		parse: func(v string) (string, bool) {
			for _, w := range words {
				if strings.EqualFold(v, w) {
					return w, true
				}
			}
			return "", false
		},
	}
}

// checked accepts any text that is not empty and that check accepts.
func checked[T any](allowed string, check func(string) (T, error)) kind {
	why := func(v string) error { _, err := check(v); return err }
	return kind{allowed: allowed, why: why, parse: func(v string) (string, bool) { return v, v != "" && why(v) == nil }}
}

// listOf accepts words separated by commas, at least one, that are all valid.
func listOf(allowed string, valid func(word string) bool) kind {
	return kind{allowed: allowed, parse: func(v string) (string, bool) {
		words := splitList(v)
		wrong := func(word string) bool { return !valid(word) }
		return strings.Join(words, ","), len(words) > 0 && !slices.ContainsFunc(words, wrong)
	}}
}

// only accepts any text, and takes every text other than words[i] for the other one of the two
// words. Case counts if exact is true.
func only(i int, exact bool, words ...string) kind {
	allowed := strings.Join(words, ", ")
	if exact {
		allowed += ", exactly"
	}
	return kind{
		allowed: allowed, words: words, lenient: true,
		parse: func(v string) (string, bool) {
			if v == words[i] || !exact && strings.EqualFold(v, words[i]) {
				return words[i], true
			}
			return words[1-i], true
		},
	}
}

// digestAlgs lists the hashes of the digest scheme.
var digestAlgs = []string{"SHA1", "SHA-224", "SHA-256", "SHA-384", "SHA-512", "SHA3-224", "SHA3-256", "SHA3-384", "SHA3-512"}

var (
	// boolean is for keys of which ZooKeeper takes every text other than true for false, strict for
	// those of which it refuses other texts, and for our own.
	boolean = only(0, false, "true", "false")
	strict  = oneOf("true", "false")
	// unlessFalse is admin.enableServer, onlyYes skipACL, onlyNo forceSync, and onlyTrue
	// kerberos.remove*.
	unlessFalse = only(1, false, "true", "false")
	onlyYes     = only(0, true, "yes", "no")
	onlyNo      = only(1, true, "yes", "no")
	onlyTrue    = only(0, true, "true", "false")
	text        = kind{
		allowed: "any text except the empty one",
		parse:   func(v string) (string, bool) { return v, v != "" },
	}
	anything = kind{
		allowed: "anything",
		parse:   func(v string) (string, bool) { return v, true },
	}
	wordList = listOf("words separated by commas, or *", func(string) bool { return true })
	// whitelist is a wordList that may be empty, as in ZooKeeper: templates write the key without a
	// value. That means srvr, which is answered in any case.
	whitelist = kind{
		allowed: "words separated by commas, or * or nothing",
		parse: func(v string) (string, bool) {
			if v == "" {
				return "srvr", true
			}
			return wordList.parse(v)
		},
	}
	// host is a host name or an IP address; IPv6 may have brackets.
	host = kind{
		allowed: "a host name or an IP address, without a port",
		parse: func(v string) (string, bool) {
			if inner, ok := strings.CutPrefix(v, "["); ok {
				inner, ok = strings.CutSuffix(inner, "]")
				return inner, ok && strings.Contains(inner, ":")
			}
			return v, isHost(v)
		},
	}
	// hostOrLoopback is clientPortAddress: Java takes an empty name for that of the machine itself.
	hostOrLoopback = kind{
		allowed: host.allowed,
		parse:   host.parse,
		nearest: func(v string) (string, bool) { return "127.0.0.1", v == "" },
	}
	httpURL = kind{
		allowed: "a URL that begins with http:// or https://",
		parse: func(v string) (string, bool) {
			u, err := url.Parse(v)
			return v, err == nil && (u.Scheme == "http" || u.Scheme == "https") && isHost(u.Hostname())
		},
	}
	urlPath = kind{
		allowed: "a path that begins with /, without ? and #",
		parse: func(v string) (string, bool) {
			trimmed := strings.TrimRight(v, "/")
			return trimmed, strings.HasPrefix(v, "/") && trimmed != "" && !strings.ContainsAny(v, "?# %")
		},
	}
	digestAlg = kind{
		allowed: strings.Join(digestAlgs, ", "),
		parse: func(v string) (string, bool) {
			if strings.EqualFold(v, "SHA-1") || strings.EqualFold(v, "SHA") {
				v = "SHA1" // Java knows it by all three names
			}
			return oneOf(digestAlgs...).parse(v)
		},
	}
	digestID = kind{
		allowed: "user:base64 of the digest of user:password", ignores: func(string) bool { return true }, // nobody is the superuser then
		parse: func(v string) (string, bool) {
			_, hash, ok := strings.Cut(v, ":")
			_, err := base64.StdEncoding.DecodeString(hash)
			return v, ok && hash != "" && err == nil
		},
	}
)

// hostName matches the name of a host, also one that only the machine knows.
var hostName = regexp.MustCompile(`^[\pL\pN_-]+(\.[\pL\pN_-]+)*\.?$`)

func isHost(text string) bool {
	_, err := netip.ParseAddr(text)
	return err == nil || hostName.MatchString(text)
}

// likeHost accepts names that have the syntax of a host's.
func likeHost(allowed string) kind {
	return kind{allowed: allowed, parse: func(v string) (string, bool) { return v, hostName.MatchString(v) }}
}

var splitList = cli.List

// lookup finds the row of a key: by name or alias, with or without "zookeeper.", or by the longest
// prefix of a pattern. canonical is the row's name, with the actual text in place of the star.
func lookup(written string) (row key, canonical string, ok bool) {
	bare := strings.TrimPrefix(written, "zookeeper.")
	for _, k := range keys {
		prefix, isPattern := strings.CutSuffix(k.name, "*")
		switch {
		case k.name == bare || slices.Contains(k.aliases, bare):
			return k, k.name, true
		case isPattern && strings.HasPrefix(bare, prefix) && len(bare) > len(prefix) && len(k.name) > len(row.name):
			row, canonical, ok = k, bare, true
		}
	}
	return row, canonical, ok
}

// similar asks whether the most similar known key was meant. It returns "" if none is similar.
func similar(written string) string {
	bare := strings.TrimPrefix(written, "zookeeper.")
	var names []string
	for _, k := range keys {
		names = append(append(names, k.name), k.aliases...)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, "*") })
	name := cli.Nearest(bare, names, 4)
	if row, _, known := lookup(name); known {
		return "; did you mean " + row.name + "?"
	}
	return ""
}
