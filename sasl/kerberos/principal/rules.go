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
	format     string
	match      *regexp.Regexp // nil: every base
	from       *regexp.Regexp // nil: the base is the short name
	to         string         // as Regexp.Expand takes it
	repeat     bool
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
			return Rules{}, fmt.Errorf("no rule begins at %q; rules are DEFAULT and RULE:[n:format](regexp)s/pattern/replacement/g", rest)
		}
		r, err := newRule(m)
		if err != nil {
			return Rules{}, fmt.Errorf("rule %q: %w", strings.TrimSpace(m[1]), err)
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
	if r.format, err = m[5], checkFormat(m[5], r.components); err != nil {
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

// parameter is a part of a format such as "$1/$2@$0". $0 is the realm, $n the n-th component.
var parameter = regexp.MustCompile(`\$[0-9]*`)

func checkFormat(format string, components int) error {
	if strings.ContainsFunc(format, notPrintable) { // Java's . and $ treat line ends in another way
		return fmt.Errorf("the format %q has characters that do not print", format)
	}
	for _, p := range parameter.FindAllString(format, -1) {
		if n, err := strconv.Atoi(p[1:]); err != nil || n > components {
			return fmt.Errorf("%s in the format stands for nothing: $0 to $%d do", p, components)
		}
	}
	return nil
}

// Short returns n's short name by the first rule that applies. A name without a realm is its own.
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
	base := parameter.ReplaceAllStringFunc(r.format, func(p string) string {
		n, _ := strconv.Atoi(p[1:]) // see checkFormat
		return params[n]
	})
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
	if r.repeat {
		return r.from.ReplaceAllString(base, r.to)
	}
	m := r.from.FindStringSubmatchIndex(base)
	if m == nil {
		return base
	}
	return base[:m[0]] + string(r.from.ExpandString(nil, r.to, base, m)) + base[m[1]:]
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
