package datatree

import (
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"
)

// validName reports whether id is a distinguished name as Java's X500Principal reads it: RDNs
// separated by , or ; of attributes separated by +, each KEYWORD=value or OID=value. The empty name
// is valid. Names are compared as text, so nothing else depends on this.
func validName(id string) bool {
	for more := id != ""; more; {
		m := attribute.FindStringSubmatch(id)
		if m == nil || !validKeyword(m[1]) || m[2] != "" && !validDER(m[2][1:]) {
			return false
		}
		id, more = id[len(m[0]):], m[3] != ""
	}
	return true
}

// attribute matches an attribute and the separator after it. A value is DER in hexadecimal digits
// after a #, or in quotes, or text in which some characters must be escaped.
var attribute = func() *regexp.Regexp {
	const escape = `\\(?:[0-9A-Fa-f]{2}|[,=\n+<>#;\\" ])`
	return regexp.MustCompile(`^([^=]*)=[ \n]*(?:` +
		`(#(?:[0-9A-Fa-f]{2})*) *|` +
		`"(?:[^"\\]|` + escape + `)*"[ \n]*|` +
		`(?:(?:[^ \n#,+<>;"\\]|` + escape + `)(?:[^,+<>;"\\]|` + escape + `)*)?` +
		`)([,;+]|$)`)
}()

func validKeyword(keyword string) bool {
	keyword = strings.ToUpper(strings.Trim(keyword, " \t\r\n\f\v"))
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

// validDER checks that digits are a value with its tag and length.
func validDER(digits string) bool {
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
