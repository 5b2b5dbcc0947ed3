package principal

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// compile compiles a regular expression of Java. It refuses syntax that Go lacks, or that has
// another meaning in Go: the only escapes with letters are \d, \D, \w, \W, \s, \S, \A and \z, a
// class may not contain another or an intersection, and a group has no flags. With whole, the
// expression must match a whole text, as in Matcher.matches.
func compile(expr string, whole bool) (*regexp.Regexp, error) {
	if err := sameInBoth(expr); err != nil {
		return nil, fmt.Errorf("the regular expression %q cannot be used: %w", expr, err)
	}
	if _, err := regexp.Compile(expr); err != nil {
		return nil, fmt.Errorf("the regular expression %q cannot be used: %w", expr, err)
	}
	if whole {
		expr = `\A(?:` + expr + `)\z`
	}
	return regexp.Compile(expr)
}

// sameInBoth returns an error for syntax that Java and Go understand differently.
func sameInBoth(expr string) error {
	inClass := false
	for i := 0; i < len(expr); i++ {
		rest := expr[i:]
		switch c := expr[i]; {
		case c < ' ' || c >= 0x7f:
			return errors.New("it has characters that are not printable ASCII")
		case c == '\\':
			i++
			if i == len(expr) {
				return errors.New("it ends in a backslash")
			}
			allowed := "dDwWsSAz"
			if inClass {
				allowed = "dDwWsS"
			}
			if e := expr[i]; (isLetter(e) || isDigit(e)) && strings.IndexByte(allowed, e) < 0 {
				return fmt.Errorf(`\%c is not among the escapes that mean the same in Java and here: \d \D \w \W \s \S \A \z, and a backslash before punctuation`, e)
			}
		case inClass && c == '[':
			return errors.New("a class within a class means something else in Java than here")
		case inClass && strings.HasPrefix(rest, "&&"):
			return errors.New("there are no intersections of classes here")
		case inClass && c == ']':
			inClass = false
		case c == '[' && !inClass:
			inClass = true
			if strings.HasPrefix(rest, "[]") || strings.HasPrefix(rest, "[^]") {
				return errors.New("a class that begins with ] means something else in Java than here: write \\]")
			}
		case !inClass && strings.HasPrefix(rest, "(?") && !strings.HasPrefix(rest, "(?:"):
			return errors.New("of the groups that begin with (? only (?: is allowed")
		case !inClass && c == '{' && !quantifier.MatchString(rest):
			return errors.New("a { that begins no repetition must have a backslash before it")
		}
	}
	return nil
}

// quantifier is a repetition that Java and Go understand alike.
var quantifier = regexp.MustCompile(`^\{[0-9]+(,[0-9]*)?\}`)

// parseReplacement returns a replacement of Java's Matcher in the form of Regexp.Expand: $n is
// group n, where n takes as many digits as the number of an existing group allows, and a backslash
// quotes the next character.
func parseReplacement(to string, from *regexp.Regexp) (string, error) {
	var b strings.Builder
	for i := 0; i < len(to); i++ {
		if to[i] != '$' {
			if to[i] == '\\' {
				if i++; i == len(to) {
					return "", fmt.Errorf("the replacement %q ends in a backslash", to)
				}
			}
			b.WriteString(strings.ReplaceAll(to[i:i+1], "$", "$$"))
			continue
		}
		i++
		if i == len(to) || !isDigit(to[i]) {
			return "", fmt.Errorf("the replacement %q has a $ without the number of a group; write \\$ for the character", to)
		}
		n := int(to[i] - '0')
		if n > from.NumSubexp() {
			return "", fmt.Errorf("the replacement %q names group %d, and the pattern has %d", to, n, from.NumSubexp())
		}
		for i+1 < len(to) && isDigit(to[i+1]) && n*10+int(to[i+1]-'0') <= from.NumSubexp() {
			i++
			n = n*10 + int(to[i]-'0')
		}
		fmt.Fprintf(&b, "${%d}", n)
	}
	return b.String(), nil
}

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }
