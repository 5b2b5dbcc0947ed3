package datatree

import (
	"encoding/hex"
	"strconv"
	"strings"
)

// validName reports whether id is a distinguished name as Java's X500Principal reads it: RDNs
// separated by , or ; of attributes separated by +, each KEYWORD=value or OID=value. The empty name
// is valid. Names are compared as text, so nothing else depends on this.
func validName(id string) bool {
	if id == "" {
		return true
	}
	for {
		end := nameEnd(id, ",;")
		for rdn := id[:end]; ; {
			end := nameEnd(rdn, "+")
			if !validAttribute(rdn[:end]) {
				return false
			}
			if end == len(rdn) {
				break
			}
			rdn = rdn[end+1:]
		}
		if end == len(id) {
			return true
		}
		id = id[end+1:]
	}
}

// nameEnd returns the index of the first separator that is neither escaped nor quoted, or len(s).
func nameEnd(s, separators string) int {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\':
			i++
		case s[i] == '"':
			quoted = !quoted
		case !quoted && strings.IndexByte(separators, s[i]) >= 0:
			return i
		}
	}
	return len(s)
}

// validAttribute checks KEYWORD=value.
func validAttribute(s string) bool {
	keyword, value, ok := strings.Cut(s, "=")
	if !ok || !validKeyword(strings.ToUpper(strings.Trim(keyword, " \t\r\n\f\v"))) {
		return false
	}
	value = strings.TrimLeft(value, " \n")
	switch {
	case value == "":
		return true
	case value[0] == '#':
		return validHex(strings.TrimRight(value[1:], " "))
	case value[0] == '"':
		return validQuoted(value[1:])
	}
	return validText(value)
}

func validKeyword(keyword string) bool {
	switch keyword {
	case "CN", "C", "L", "S", "ST", "O", "OU", "T", "IP", "STREET", "DC", "DNQUALIFIER", "DNQ", "SURNAME", "GIVENNAME",
		"INITIALS", "GENERATION", "EMAIL", "EMAILADDRESS", "UID", "SERIALNUMBER":
		return true
	}
	parts := strings.Split(strings.TrimPrefix(keyword, "OID."), ".")
	for i, part := range parts {
		if part == "" || strings.Trim(part, "0123456789") != "" {
			return false
		}
		switch n, err := strconv.Atoi(part); {
		case i == 0 && (err != nil || n > 2), i == 1 && parts[0] != "2" && (err != nil || n >= 40):
			return false
		}
	}
	return len(parts) >= 2
}

// validHex checks the value of an attribute in DER, in hexadecimal digits.
func validHex(digits string) bool {
	b, err := hex.DecodeString(digits)
	if err != nil || len(b) < 2 {
		return false
	}
	length, rest := int(b[1]), b[2:]
	if length >= 0x80 {
		n := length & 0x7f
		if n == 0 || n > 4 || n > len(rest) {
			return false
		}
		length = 0
		for _, digit := range rest[:n] {
			length = length<<8 | int(digit)
		}
		rest = rest[n:]
	}
	return length == len(rest)
}

const (
	// escapable may follow a backslash in a value, and needSlash must.
	escapable = ",=\n+<>#;\\\" "
	needSlash = ",+<>;\""
)

// validEscape checks the escape after a backslash, and returns its length.
func validEscape(s string) (n int, ok bool) {
	isHex := func(c byte) bool { return strings.IndexByte("0123456789abcdefABCDEF", c) >= 0 }
	switch {
	case s == "":
		return 0, false
	case isHex(s[0]):
		return 2, len(s) >= 2 && isHex(s[1])
	}
	return 1, strings.IndexByte(escapable, s[0]) >= 0
}

// validQuoted checks the rest of a value after its first quote.
func validQuoted(s string) bool {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			return strings.Trim(s[i+1:], " \n") == ""
		case '\\':
			n, ok := validEscape(s[i+1:])
			if !ok {
				return false
			}
			i += n
		}
	}
	return false
}

// validText checks a value without quotes.
func validText(s string) bool {
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\':
			n, ok := validEscape(s[i+1:])
			if !ok {
				return false
			}
			i += n
		case strings.IndexByte(needSlash, s[i]) >= 0:
			return false
		}
	}
	return true
}
