package sasl

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/gozkd/gozkd/internal/secretfile"
)

// Classes of login modules that ZooKeeper's JAAS files name.
const (
	DigestLoginModule   = "org.apache.zookeeper.server.auth.DigestLoginModule"
	KerberosLoginModule = "com.sun.security.auth.module.Krb5LoginModule"
	// kafkaLoginModule has DigestLoginModule's options, and is read as that, as in ZooKeeper.
	kafkaLoginModule = "org.apache.kafka.common.security.plain.PlainLoginModule"
)

// JAAS is a JAAS configuration: sections by name, each with the modules that it lists.
type JAAS map[string][]LoginModule

// LoginModule is an entry of a section.
type LoginModule struct {
	Class   string
	Options map[string]string // may contain passwords
}

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
	for p.next(); p.kind != jaasEnd && p.err == nil; {
		name, modules := p.section()
		if _, again := j[name]; again {
			p.fail(p.line, "the section %q is there twice", name)
		}
		j[name] = modules
	}
	if p.err != nil {
		return nil, p.err
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

// jaasParser holds the present token and the rest of the text. After an error it reads no further.
type jaasParser struct {
	text     string // after the token
	line     int    // of the token
	kind     jaasKind
	word     string
	err      error // the first one
	property func(name string) (string, bool)
}

// section reads NAME { MODULE... } ;
func (p *jaasParser) section() (name string, modules []LoginModule) {
	name = p.take("the name of a section")
	p.skip('{')
	for p.kind != '}' && p.err == nil {
		modules = append(modules, p.module())
	}
	p.skip('}')
	p.skip(';')
	return name, modules
}

// module reads CLASS FLAG [OPTION=VALUE]... ;
func (p *jaasParser) module() LoginModule {
	m := LoginModule{Class: p.take("a class or }"), Options: make(map[string]string)}
	if m.Class == kafkaLoginModule {
		m.Class = DigestLoginModule
	}
	line := p.line
	switch strings.ToLower(p.take("required, requisite, sufficient or optional")) { // without effect here
	case "required", "requisite", "sufficient", "optional":
	default:
		p.fail(line, "after the class there must be required, requisite, sufficient or optional")
	}
	for p.kind != ';' && p.err == nil {
		option := p.take("an option or ;")
		p.skip('=')
		line := p.line
		value, err := p.expand(p.take("the value of an option"))
		if err != nil {
			p.fail(line, "%w", err)
		}
		m.Options[option] = value
	}
	p.skip(';')
	return m
}

// fail keeps an error of a line, unless there is an earlier one.
func (p *jaasParser) fail(line int, format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("line %d: "+format, append([]any{line}, args...)...)
	}
}

// take returns the present word and reads the next token.
func (p *jaasParser) take(what string) (word string) {
	if word = p.word; p.kind != jaasWord {
		p.unexpected(what)
	}
	p.next()
	return word
}

// skip reads the token after a punctuation mark.
func (p *jaasParser) skip(mark jaasKind) {
	if p.kind != mark {
		p.unexpected(string(rune(mark)))
	}
	p.next()
}

// unexpected fails without the text of words, which may be passwords.
func (p *jaasParser) unexpected(want string) {
	found := "the mark " + string(rune(p.kind))
	switch p.kind {
	case jaasEnd:
		found = "the end of the file"
	case jaasWord:
		found = "a word"
	}
	p.fail(p.line, "expected %s, found %s", want, found)
}

const jaasMarks = "{};="

// The parts of a JAAS file's text. The escapes are those of Java's StreamTokenizer.
var (
	jaasBlank    = regexp.MustCompile(`^(?:[ \t\r\n\f\v]|//[^\n]*|/\*(?s:.*?)\*/)+`)
	jaasQuoted   = regexp.MustCompile(`^(?:"(?:[^"\\\r\n]|\\(?s:.))*"|'(?:[^'\\\r\n]|\\(?s:.))*')`)
	jaasPlain    = regexp.MustCompile(`^[^{};= \t\r\n\f\v"']+`)
	jaasEscape   = regexp.MustCompile(`\\(?:[0-3][0-7]{0,2}|[4-7][0-7]?|(?s:.))`)
	jaasProperty = regexp.MustCompile(`\$\{[^}]*\}?`)
)

func (p *jaasParser) next() {
	if p.err != nil {
		return
	}
	blank := jaasBlank.FindString(p.text)
	p.text = p.text[len(blank):]
	p.line += strings.Count(blank, "\n")
	p.kind, p.word = jaasWord, ""
	switch {
	case p.text == "":
		p.kind = jaasEnd
	case strings.HasPrefix(p.text, "/*"):
		p.fail(p.line, "a comment does not end")
	case strings.IndexByte(jaasMarks, p.text[0]) >= 0:
		p.kind, p.text = jaasKind(p.text[0]), p.text[1:]
	case p.text[0] == '"' || p.text[0] == '\'':
		quoted := jaasQuoted.FindString(p.text)
		if quoted == "" {
			p.fail(p.line, "a quoted string does not end on its line")
			return
		}
		p.text = p.text[len(quoted):]
		p.word = jaasEscape.ReplaceAllStringFunc(quoted[1:len(quoted)-1], unescape)
	case p.text[0] == '#':
		p.fail(p.line, "# does not begin a comment here, // does")
	default:
		p.word = jaasPlain.FindString(p.text)
		p.text = p.text[len(p.word):]
	}
}

func unescape(escape string) string {
	const letters, bytes = "abfnrtv", "\a\b\f\n\r\t\v"
	if i := strings.IndexByte(letters, escape[1]); i >= 0 {
		return bytes[i : i+1]
	}
	if c, err := strconv.ParseUint(escape[1:], 8, 8); err == nil {
		return string([]byte{byte(c)})
	}
	return escape[1:]
}

// expand replaces ${name} by the property of that name and ${/} by the separator of paths.
func (p *jaasParser) expand(value string) (expanded string, err error) {
	expanded = jaasProperty.ReplaceAllStringFunc(value, func(property string) string {
		name, ends := strings.CutSuffix(property[len("${"):], "}")
		replacement, known := string(os.PathSeparator), name == "/"
		if !known && p.property != nil {
			replacement, known = p.property(name)
		}
		switch {
		case !ends:
			err = errors.New("a value has ${ without }")
		case !known:
			err = errors.New("a value names a property in ${} that is not set with -D")
		}
		return replacement
	})
	return expanded, err
}
