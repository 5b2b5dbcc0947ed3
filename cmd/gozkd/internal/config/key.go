package config

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// status says what setting a key does.
type status string

const (
	works    status = "works"
	harmless status = "harmless" // accepted; there is nothing to do for it here
	later    status = "later"    // accepted with a warning: what it asks for is not there yet
	refused  status = "refused"  // stops the start: going on without it would be wrong
)

// key is one row of the table.
type key struct {
	// name is the key in zoo.cfg. One that ends in ".*" stands for all keys with what is before the star.
	name string
	// aliases are other names, such as that of the system property where it differs from "zookeeper." + name.
	aliases []string
	// kind says what the value may be.
	kind kind
	// def is the default, for the documentation; empty where there is none.
	def string
	// status and note say what the key does here. The note of a key that does not work is the reason.
	status status
	note   string
	// fine are values of a key that does not work which ask for nothing that is missing here: they are taken
	// without a word. A star stands for any value.
	fine []string
	// bind connects the key with its field of Config.
	bind binding
	// reload: another value takes effect when the configuration is read again, and else at the next start.
	reload bool
	// secret keeps the value out of messages.
	secret bool
}

// kind is what a value may be.
type kind struct {
	allowed string // completes "allowed: "
	// parse returns the value in its one canonical spelling, or false.
	parse func(string) (string, bool)
}

// binding moves a canonical value between its text and its field.
type binding struct {
	set func(*Config, string)
	get func(*Config) string
}

// integer is a decimal number from low to high.
func integer(low, high int64) kind { return number(low, high, parseDecimal) }

// property32 is a number as Integer.getInteger reads it from a system property: 0x and # mean hexadecimal, 0 octal.
func property32(low, high int64) kind {
	k := number(low, high, decode)
	k.allowed += ", decimal, 0x hexadecimal or 0 octal"
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

func parseDecimal(v string) (int64, error) { return strconv.ParseInt(v, 10, 64) }

// decode is java.lang.Long.decode.
func decode(v string) (int64, error) {
	sign, digits := "", v
	if v != "" && (v[0] == '-' || v[0] == '+') {
		sign, digits = v[:1], v[1:]
	}
	base := 10
	switch {
	case strings.HasPrefix(digits, "0x"), strings.HasPrefix(digits, "0X"):
		digits, base = digits[2:], 16
	case strings.HasPrefix(digits, "#"):
		digits, base = digits[1:], 16
	case strings.HasPrefix(digits, "0") && len(digits) > 1:
		digits, base = digits[1:], 8
	}
	if strings.HasPrefix(digits, "-") || strings.HasPrefix(digits, "+") {
		return 0, strconv.ErrSyntax // "0x-1", "--1"
	}
	return strconv.ParseInt(sign+digits, base, 64)
}

// oneOf is one of the words, in any case; canonical is the spelling here.
func oneOf(words ...string) kind {
	return kind{
		allowed: strings.Join(words, ", "),
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

var (
	boolean = oneOf("true", "false")
	// yesNo keeps to ZooKeeper's words: there skipACL=true does not skip ACLs, so a guess could go either way.
	yesNo = oneOf("yes", "no")
	text  = kind{
		allowed: "any text, but not empty",
		parse:   func(v string) (string, bool) { return v, v != "" },
	}
	anything = kind{
		allowed: "anything",
		parse:   func(v string) (string, bool) { return v, true },
	}
	// wordList is a comma-separated list.
	wordList = kind{
		allowed: "words with commas between them, or *",
		parse: func(v string) (string, bool) {
			words := splitList(v)
			return strings.Join(words, ","), len(words) > 0
		},
	}
	// host is a name or an IP address; IPv6 may stand in brackets.
	host = kind{
		allowed: "a host name or an IP address, without a port",
		parse: func(v string) (string, bool) {
			if inner, ok := strings.CutPrefix(v, "["); ok {
				inner, ok = strings.CutSuffix(inner, "]")
				return inner, ok && strings.Contains(inner, ":")
			}
			return v, v != "" && !strings.ContainsAny(v, " /[]") && strings.Count(v, ":") != 1
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
		allowed: "the name of a hash",
		parse: func(v string) (string, bool) {
			if strings.EqualFold(v, "SHA-1") || strings.EqualFold(v, "SHA1") {
				return "SHA1", true
			}
			return v, v != ""
		},
	}
	digestID = kind{
		allowed: "user:base64 of the digest of user:password",
		parse: func(v string) (string, bool) {
			user, hash, ok := strings.Cut(v, ":")
			_, err := base64.StdEncoding.DecodeString(hash)
			return v, ok && user != "" && hash != "" && err == nil
		},
	}
)

// splitList splits at commas and drops white space and empty elements.
func splitList(v string) []string {
	var words []string
	for w := range strings.SplitSeq(v, ",") {
		if w = trim(w); w != "" {
			words = append(words, w)
		}
	}
	return words
}

// The bindings below rely on canonical values: kind.parse has accepted them, so parsing them again can't fail.

func bindText(field func(*Config) *string) binding {
	return binding{
		set: func(c *Config, v string) { *field(c) = v },
		get: func(c *Config) string { return *field(c) },
	}
}

func bindInt(field func(*Config) *int) binding {
	return binding{
		set: func(c *Config, v string) { *field(c) = int(mustInt(v)) },
		get: func(c *Config) string { return strconv.Itoa(*field(c)) },
	}
}

func bindMs(field func(*Config) *time.Duration) binding {
	return binding{
		set: func(c *Config, v string) { *field(c) = time.Duration(mustInt(v)) * time.Millisecond },
		get: func(c *Config) string { return strconv.FormatInt(field(c).Milliseconds(), 10) },
	}
}

func bindKiB(field func(*Config) *int64) binding {
	return binding{
		set: func(c *Config, v string) { *field(c) = mustInt(v) << 10 },
		get: func(c *Config) string { return strconv.FormatInt(*field(c)>>10, 10) },
	}
}

func bindBool(yes, no string, field func(*Config) *bool) binding {
	return binding{
		set: func(c *Config, v string) { *field(c) = v == yes },
		get: func(c *Config) string {
			if *field(c) {
				return yes
			}
			return no
		},
	}
}

func bindList(field func(*Config) *[]string) binding {
	return binding{
		set: func(c *Config, v string) { *field(c) = splitList(v) },
		get: func(c *Config) string { return strings.Join(*field(c), ",") },
	}
}

func mustInt(canonical string) int64 {
	n, err := parseDecimal(canonical)
	if err != nil {
		panic("config: canonical number " + strconv.Quote(canonical) + " can't be read")
	}
	return n
}
