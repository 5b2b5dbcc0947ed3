package sasl

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/gozkd/gozkd/internal/secretfile"
)

// Classes of login modules that ZooKeeper's JAAS files name.
const (
	DigestLoginModule   = "org.apache.zookeeper.server.auth.DigestLoginModule"
	KerberosLoginModule = "com.sun.security.auth.module.Krb5LoginModule"
)

// JAAS is a JAAS configuration: sections by name, each with the modules that it lists.
type JAAS map[string][]LoginModule

// LoginModule is an entry of a section.
type LoginModule struct {
	Class   string
	Options map[string]string // may contain passwords
}

// maxJAAS bounds a JAAS file in bytes.
const maxJAAS = 1 << 20

// LoadJAAS reads a JAAS file. property returns the value of a Java property, for ${name}. warning
// is not empty if every user of the machine can read the file. Errors do not show options.
func LoadJAAS(path string, property func(name string) (string, bool)) (j JAAS, warning string, err error) {
	text, shared, err := secretfile.Read(path, maxJAAS)
	if err != nil {
		return nil, "", fmt.Errorf("JAAS file: %w", err)
	}
	if j, err = ParseJAAS(string(text), property); err != nil {
		return nil, "", fmt.Errorf("JAAS file %s: %w", path, err)
	}
	if shared != "" {
		warning = path + ": " + shared
	}
	return j, warning, nil
}

// ParseJAAS reads the text of a JAAS file:
//
//	Section { module.Class flag option="value" option=value ; ... } ;
//
// with // and /* */ as comments. property is as for LoadJAAS; nil means that no property is set.
func ParseJAAS(text string, property func(name string) (string, bool)) (JAAS, error) {
	p := jaasParser{text: text, line: 1, property: property}
	j := make(JAAS)
	if err := p.next(); err != nil {
		return nil, err
	}
	for p.kind != jaasEnd {
		name, modules, err := p.section()
		if err != nil {
			return nil, err
		}
		if _, again := j[name]; again {
			return nil, fmt.Errorf("line %d: the section %q is there twice", p.line, name)
		}
		j[name] = modules
	}
	return j, nil
}

// Module returns the first module of a class in a section, or nil.
func (j JAAS) Module(section, class string) *LoginModule {
	for i := range j[section] {
		if j[section][i].Class == class {
			return &j[section][i]
		}
	}
	return nil
}

// DigestUsers returns the users of a section's DigestLoginModules: the options
// user_NAME="password". superPassword, unless empty, replaces the password of the user super.
func (j JAAS) DigestUsers(section, superPassword string) DigestUsers {
	users := make(DigestUsers)
	for _, m := range j[section] {
		if m.Class != DigestLoginModule {
			continue
		}
		for option, value := range m.Options {
			if name, ok := strings.CutPrefix(option, "user_"); ok {
				users.Set(name, value)
			}
		}
	}
	if superPassword != "" {
		users.Set("super", superPassword)
	}
	return users
}

// jaasKind is a kind of token: a word, the end, or the byte of a punctuation mark.
type jaasKind byte

const (
	jaasEnd  jaasKind = 0
	jaasWord jaasKind = 'a'
)

// jaasParser holds the present token and the rest of the text.
type jaasParser struct {
	text     string // after the token
	line     int    // of the token
	kind     jaasKind
	word     string
	property func(name string) (string, bool)
}

// section reads NAME { MODULE... } ;
func (p *jaasParser) section() (name string, modules []LoginModule, err error) {
	if name, err = p.take("the name of a section"); err != nil {
		return "", nil, err
	}
	if err := p.skip('{'); err != nil {
		return "", nil, err
	}
	for p.kind != '}' {
		m, err := p.module()
		if err != nil {
			return "", nil, err
		}
		modules = append(modules, m)
	}
	if err := p.skip('}'); err != nil {
		return "", nil, err
	}
	return name, modules, p.skip(';')
}

// module reads CLASS FLAG [OPTION=VALUE]... ;
func (p *jaasParser) module() (m LoginModule, err error) {
	if m.Class, err = p.take("a class or }"); err != nil {
		return m, err
	}
	line := p.line
	flag, err := p.take("required, requisite, sufficient or optional") // without effect here
	if err != nil {
		return m, err
	}
	switch strings.ToLower(flag) {
	case "required", "requisite", "sufficient", "optional":
	default:
		return m, fmt.Errorf("line %d: after the class there must be required, requisite, sufficient or optional", line)
	}
	m.Options = make(map[string]string)
	for p.kind != ';' {
		option, err := p.take("an option or ;")
		if err != nil {
			return m, err
		}
		if err := p.skip('='); err != nil {
			return m, err
		}
		value, line := p.word, p.line
		if _, err := p.take("the value of an option"); err != nil {
			return m, err
		}
		if value, err = p.expand(value); err != nil {
			return m, fmt.Errorf("line %d: %w", line, err)
		}
		m.Options[option] = value
	}
	return m, p.skip(';')
}

// take returns the present word and reads the next token.
func (p *jaasParser) take(what string) (string, error) {
	if p.kind != jaasWord {
		return "", p.unexpected(what)
	}
	word := p.word
	return word, p.next()
}

// skip reads the token after a punctuation mark.
func (p *jaasParser) skip(mark jaasKind) error {
	if p.kind != mark {
		return p.unexpected(string(rune(mark)))
	}
	return p.next()
}

// unexpected returns an error without the text of words, which may be passwords.
func (p *jaasParser) unexpected(want string) error {
	found := "the mark " + string(rune(p.kind))
	switch p.kind {
	case jaasEnd:
		found = "the end of the file"
	case jaasWord:
		found = "a word"
	}
	return fmt.Errorf("line %d: expected %s, found %s", p.line, want, found)
}

const (
	jaasMarks = "{};="
	jaasBlank = " \t\r\n\f\v"
)

// next reads the next token.
func (p *jaasParser) next() error {
	if err := p.skipBlank(); err != nil {
		return err
	}
	p.word = ""
	switch {
	case p.text == "":
		p.kind = jaasEnd
	case strings.IndexByte(jaasMarks, p.text[0]) >= 0:
		p.kind, p.text = jaasKind(p.text[0]), p.text[1:]
	case p.text[0] == '"' || p.text[0] == '\'':
		p.kind = jaasWord
		return p.quotedWord()
	case p.text[0] == '#':
		return fmt.Errorf("line %d: # does not begin a comment here, // does", p.line)
	default:
		p.kind = jaasWord
		end := strings.IndexAny(p.text, jaasMarks+jaasBlank+`"'`)
		if end < 0 {
			end = len(p.text)
		}
		p.word, p.text = p.text[:end], p.text[end:]
	}
	return nil
}

// skipBlank skips white space and comments.
func (p *jaasParser) skipBlank() error {
	for p.text != "" {
		switch {
		case p.text[0] == '\n':
			p.line++
			p.text = p.text[1:]
		case strings.IndexByte(jaasBlank, p.text[0]) >= 0:
			p.text = p.text[1:]
		case strings.HasPrefix(p.text, "//"):
			end := strings.IndexByte(p.text, '\n')
			if end < 0 {
				end = len(p.text)
			}
			p.text = p.text[end:]
		case strings.HasPrefix(p.text, "/*"):
			end := strings.Index(p.text[2:], "*/")
			if end < 0 {
				return fmt.Errorf("line %d: a comment does not end", p.line)
			}
			p.line += strings.Count(p.text[:end+4], "\n")
			p.text = p.text[end+4:]
		default:
			return nil
		}
	}
	return nil
}

// quotedWord parses a quoted string with the escapes of Java's StreamTokenizer.
func (p *jaasParser) quotedWord() error {
	quote := p.text[0]
	var b strings.Builder
	for i := 1; i < len(p.text) && p.text[i] != '\n' && p.text[i] != '\r'; i++ {
		c := p.text[i]
		switch {
		case c == quote:
			p.word, p.text = b.String(), p.text[i+1:]
			return nil
		case c == '\\' && i+1 < len(p.text):
			var n int
			c, n = unescape(p.text[i+1:])
			i += n
		}
		b.WriteByte(c)
	}
	return fmt.Errorf("line %d: a quoted string does not end on its line", p.line)
}

// unescape returns the byte that an escape stands for, and its length without the backslash, which
// s follows.
func unescape(s string) (c byte, n int) {
	const letters, bytes = "abfnrtv", "\a\b\f\n\r\t\v"
	if i := strings.IndexByte(letters, s[0]); i >= 0 {
		return bytes[i], 1
	}
	for n < min(3, len(s)) && s[n] >= '0' && s[n] <= '7' && (n < 2 || s[0] <= '3') {
		c = c<<3 | (s[n] - '0')
		n++
	}
	if n > 0 {
		return c, n
	}
	return s[0], 1
}

// expand replaces ${name} by the property of that name and ${/} by the separator of paths.
func (p *jaasParser) expand(value string) (string, error) {
	var b strings.Builder
	for {
		before, after, ok := strings.Cut(value, "${")
		b.WriteString(before)
		if !ok {
			return b.String(), nil
		}
		name, rest, ok := strings.Cut(after, "}")
		if !ok {
			return "", errors.New("a value has ${ without }")
		}
		known := false
		replacement := string(os.PathSeparator)
		if name != "/" && p.property != nil {
			replacement, known = p.property(name)
		}
		if !known && name != "/" {
			return "", errors.New("a value names a property in ${} that is not set with -D")
		}
		b.WriteString(replacement)
		value = rest
	}
}
