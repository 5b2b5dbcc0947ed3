package sasl

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// maxDirectives bounds a token of DIGEST-MD5 in bytes, as RFC 2831 does.
const maxDirectives = 4096

// directives are the fields of a token of DIGEST-MD5 by lower-case name, without quotes.
type directives map[string]string

// name returns the user's name in UTF-8.
func (d directives) name() string {
	name := d["username"]
	if _, utf8 := d["charset"]; utf8 {
		return name
	}
	runes := make([]rune, 0, len(name))
	for i := range len(name) {
		runes = append(runes, rune(name[i]))
	}
	return string(runes)
}

// encode returns the client's token with these directives.
func (d directives) encode() []byte {
	var b strings.Builder
	for _, name := range []string{"charset", "username", "realm", "nonce", "nc", "cnonce", "digest-uri", "maxbuf", "response", "qop"} {
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		value := d[name]
		switch name {
		case "username", "realm", "nonce", "cnonce", "digest-uri":
			value = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
		}
		b.WriteString(name + "=" + value)
	}
	return []byte(b.String())
}

// parseDirectives parses name=value pairs, separated by commas. A value is a token or a quoted
// string, in which a backslash quotes the next byte. White space around names, values and commas is
// ignored, and commas may repeat. Errors do not show the token.
func parseDirectives(token []byte) (directives, error) {
	if len(token) > maxDirectives {
		return nil, fmt.Errorf("the token has %d bytes, allowed are %d", len(token), maxDirectives)
	}
	d := make(directives)
	rest := string(token)
	for {
		rest = strings.TrimLeft(rest, ", \t\r\n")
		if rest == "" {
			return d, nil
		}
		name, after, ok := strings.Cut(rest, "=")
		name = strings.ToLower(strings.TrimRight(name, " \t\r\n"))
		if !ok || name == "" || strings.ContainsAny(name, "\", \t\r\n") {
			return nil, errors.New("a directive is not name=value")
		}
		value, after, err := parseValue(strings.TrimLeft(after, " \t\r\n"))
		if err != nil {
			return nil, err
		}
		if _, again := d[name]; again {
			return nil, errors.New("a directive is repeated")
		}
		d[name] = value
		rest = strings.TrimLeft(after, " \t\r\n")
		if rest != "" && rest[0] != ',' {
			return nil, errors.New("a directive is followed by something else than a comma")
		}
	}
}

// A quoted string, and a backslash with the byte that it quotes.
var (
	quotedString = regexp.MustCompile(`^"(?:[^"\\]|\\(?s:.))*"`)
	quotedByte   = regexp.MustCompile(`\\((?s:.))`)
)

// parseValue parses the value at the beginning of s.
func parseValue(s string) (value, rest string, err error) {
	if !strings.HasPrefix(s, `"`) {
		end := strings.IndexAny(s+",", ", \t\r\n")
		if strings.Contains(s[:end], `"`) {
			return "", "", errors.New("a quote within a token")
		}
		return s[:end], s[end:], nil
	}
	quoted := quotedString.FindString(s)
	if quoted == "" {
		return "", "", errors.New("a quoted string does not end")
	}
	return quotedByte.ReplaceAllString(quoted[1:len(quoted)-1], "$1"), s[len(quoted):], nil
}
