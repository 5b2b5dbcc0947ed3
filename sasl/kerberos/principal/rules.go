package principal

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Rules are those of security.auth_to_local, in their order.
type Rules struct {
	list         []rule
	defaultRealm string
}

// rule is DEFAULT, or RULE:[components:format](match)s/from/to/g.
type rule struct {
	text       string
	isDefault  bool
	components int
	format     []piece
	match      *regexp.Regexp // nil: every base
	from       *regexp.Regexp // nil: the base is the short name
	to         []piece
	repeat     bool
}

// piece is a literal text or the number of a parameter.
type piece struct {
	text   string
	number int // -1: text
}

// ruleSyntax is the expression of ZooKeeper's KerberosName, so that both accept the same rules.
// Java's \s includes the vertical tab.
var ruleSyntax = regexp.MustCompile(`^[\s\x0b]*((DEFAULT)|(RULE:\[(\d*):([^\]]*)](\(([^)]*)\))?(s/([^/]*)/([^/]*)/(g)?)?))`)

// ParseRules parses the value of security.auth_to_local. defaultRealm is that of krb5.conf.
// ParseRules refuses a rule that has another meaning in Java, or that could only fail.
func ParseRules(text, defaultRealm string) (Rules, error) {
	rules := Rules{defaultRealm: defaultRealm}
	rest := strings.TrimFunc(text, func(r rune) bool { return r <= ' ' })
	for rest != "" {
		m := ruleSyntax.FindStringSubmatch(rest)
		if m == nil {
			return Rules{}, fmt.Errorf("principal: no rule begins at %q; rules are DEFAULT and RULE:[n:format](regexp)s/pattern/replacement/g", rest)
		}
		r, err := newRule(m)
		if err != nil {
			return Rules{}, fmt.Errorf("principal: rule %q: %w", strings.TrimSpace(m[1]), err)
		}
		rules.list = append(rules.list, r)
		rest = rest[len(m[0]):]
	}
	return rules, nil
}

func newRule(m []string) (r rule, err error) {
	r = rule{text: m[1], isDefault: m[2] != ""}
	if r.isDefault {
		return r, nil
	}
	if r.components, err = strconv.Atoi(m[4]); err != nil {
		return r, fmt.Errorf("%q is not a number of components", m[4])
	}
	if r.format, err = parseFormat(m[5], r.components); err != nil {
		return r, err
	}
	if m[6] != "" {
		if r.match, err = compile(m[7], true); err != nil {
			return r, err
		}
	}
	if m[8] == "" {
		return r, nil
	}
	if r.from, err = compile(m[9], false); err != nil {
		return r, err
	}
	r.repeat = m[11] != ""
	if r.repeat && r.from.MatchString("") {
		return r, fmt.Errorf("the pattern %q matches the empty text, which Java and Go replace repeatedly in different places; change it so that it does not", m[9])
	}
	r.to, err = parseReplacement(m[10], r.from)
	return r, err
}

// parseFormat splits a format such as "$1/$2@$0" into pieces. $0 is the realm, $n the n-th
// component.
func parseFormat(format string, components int) ([]piece, error) {
	if strings.ContainsFunc(format, notPrintable) { // Java's . and $ treat line ends in another way
		return nil, fmt.Errorf("the format %q has characters that do not print", format)
	}
	var pieces []piece
	for format != "" {
		text, after, found := strings.Cut(format, "$")
		if text != "" {
			pieces = append(pieces, piece{text, -1})
		}
		if !found {
			break
		}
		digits := 0
		for digits < len(after) && isDigit(after[digits]) {
			digits++
		}
		n, err := strconv.Atoi(after[:digits])
		if err != nil || n > components {
			return nil, fmt.Errorf("$%s in the format stands for nothing: $0 to $%d do", after[:digits], components)
		}
		pieces = append(pieces, piece{number: n})
		format = after[digits:]
	}
	return pieces, nil
}

// Short returns the short name of n by the first rule that applies. A name without a realm is its
// own short name.
func (rs Rules) Short(n Name) (string, error) {
	if !n.HasRealm && !n.HasHost {
		return n.Short, nil
	}
	params := []string{n.Realm, n.Short}
	if n.HasHost {
		params = append(params, n.Host)
	}
	for _, r := range rs.list {
		short, ok := r.apply(params, rs.defaultRealm)
		if !ok {
			continue
		}
		if strings.ContainsAny(short, "/@") {
			return "", fmt.Errorf("principal: rule %q of security.auth_to_local makes %q of %q, and a short name has no / and no @", r.text, short, n)
		}
		return short, nil
	}
	return "", fmt.Errorf("principal: no rule of security.auth_to_local applies to %q; the rule DEFAULT applies to the realm %q only, which is default_realm of krb5.conf. RULE:[1:$1] RULE:[2:$1] would admit every realm", n, rs.defaultRealm)
}

func (r rule) apply(params []string, defaultRealm string) (short string, ok bool) {
	if r.isDefault {
		return params[1], params[0] == defaultRealm
	}
	if len(params)-1 != r.components {
		return "", false
	}
	base := join(r.format, func(n int) string { return params[n] })
	if r.match != nil && !r.match.MatchString(base) {
		return "", false
	}
	if r.from == nil {
		return base, true
	}
	return r.substitute(base), true
}

// substitute replaces the first match of the pattern, or all of them.
func (r rule) substitute(base string) string {
	matches := 1
	if r.repeat {
		matches = -1
	}
	var b strings.Builder
	end := 0
	for _, m := range r.from.FindAllStringSubmatchIndex(base, matches) {
		b.WriteString(base[end:m[0]])
		b.WriteString(join(r.to, func(n int) string {
			if m[2*n] < 0 { // the group did not match
				return ""
			}
			return base[m[2*n]:m[2*n+1]]
		}))
		end = m[1]
	}
	b.WriteString(base[end:])
	return b.String()
}

func join(pieces []piece, value func(number int) string) string {
	var b strings.Builder
	for _, p := range pieces {
		if p.number < 0 {
			b.WriteString(p.text)
		} else {
			b.WriteString(value(p.number))
		}
	}
	return b.String()
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
