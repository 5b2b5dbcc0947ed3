package kerberos

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jcmturner/gokrb5/v8/config"
)

// DefaultConf is where krb5.conf is unless java.security.krb5.conf names another file.
const DefaultConf = "/etc/krb5.conf"

// Conf is the content of a krb5.conf.
type Conf struct {
	conf *config.Config
}

// LoadConf reads a krb5.conf and the files that it includes. DefaultConf need not exist.
func LoadConf(name string) (*Conf, error) {
	text, err := included(name, 0)
	if errors.Is(err, fs.ErrNotExist) && name == DefaultConf {
		text, err = "", nil
	}
	if err != nil {
		return nil, fmt.Errorf("kerberos: %w", err)
	}
	conf, err := config.NewFromString(reduced(text))
	if err != nil {
		return nil, fmt.Errorf("kerberos: %s: %w", name, err)
	}
	d := &conf.LibDefaults
	for _, types := range []*[]int32{&d.DefaultTGSEnctypeIDs, &d.DefaultTktEnctypeIDs, &d.PermittedEnctypeIDs} {
		*types = slices.DeleteFunc(*types, func(t int32) bool { return keySizes[t] == 0 })
		if len(*types) == 0 {
			return nil, fmt.Errorf("kerberos: %s: the encryption types of libdefaults are all too weak; add aes256-cts-hmac-sha1-96", name)
		}
	}
	return &Conf{conf}, nil
}

// DefaultRealm returns default_realm of libdefaults.
func (c *Conf) DefaultRealm() string { return c.conf.LibDefaults.DefaultRealm }

// ClockSkew returns clockskew of libdefaults, or the default of 5 minutes.
func (c *Conf) ClockSkew() time.Duration { return c.conf.LibDefaults.Clockskew }

// used lists the settings of libdefaults that gozkd supports.
var used = []string{
	"clockskew", "default_realm", "default_tgs_enctypes", "default_tkt_enctypes", "dns_lookup_kdc", "forwardable", "noaddresses",
	"permitted_enctypes", "renew_lifetime", "ticket_lifetime", "udp_preference_limit",
}

// reduced returns the supported settings of a krb5.conf, each on a line of its own. gokrb5 panics
// at blocks within a realm, and at a block without line ends.
func reduced(text string) string {
	var b strings.Builder
	text = strings.NewReplacer("{", "{\n", "}", "\n}\n").Replace(comments.ReplaceAllString(text, ""))
	section, depth := "", 0
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		name, value, setting := strings.Cut(line, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		switch {
		case strings.HasPrefix(line, "["):
			section, _, _ = strings.Cut(line, "]")
			section, depth = section+"]", 0
			fmt.Fprintln(&b, section)
		case value == "{":
			if depth++; depth == 1 && section == "[realms]" {
				fmt.Fprintln(&b, name, "= {")
			}
		case strings.HasPrefix(line, "}"):
			if depth--; depth == 0 && section == "[realms]" {
				fmt.Fprintln(&b, "}")
			}
		case !setting || name == "":
		case section == "[libdefaults]" && depth == 0 && slices.Contains(used, name),
			section == "[domain_realm]" && depth == 0,
			section == "[realms]" && depth == 1 && name == "kdc":
			fmt.Fprintln(&b, name, "=", value)
		}
	}
	return b.String()
}

// comments matches comments, which are whole lines.
var comments = regexp.MustCompile(`(?m)^\s*[#;].*$`)

const maxIncludes = 8

var (
	includeLine = regexp.MustCompile(`^\s*include(dir)?\s+(\S+)\s*$`)
	includeName = regexp.MustCompile(`^[A-Za-z0-9_-]+$|\.conf$`) // of the files in a directory, as MIT takes them
)

// included returns the content of a file with its includes, which gokrb5 does not know, expanded.
func included(name string, depth int) (string, error) {
	if depth > maxIncludes {
		return "", fmt.Errorf("%s: files include each other", name)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for line := range strings.Lines(string(b)) {
		m := includeLine.FindStringSubmatch(line)
		if m == nil {
			text.WriteString(strings.TrimRight(line, "\r\n") + "\n")
			continue
		}
		files := []string{m[2]}
		if m[1] != "" {
			if files, err = confFiles(m[2]); err != nil {
				return "", fmt.Errorf("%s: %w", name, err)
			}
		}
		for _, file := range files {
			more, err := included(file, depth+1)
			if err != nil {
				return "", err
			}
			text.WriteString(more)
		}
	}
	return text.String(), nil
}

// confFiles returns the files of an includedir directory. The directory may be missing, as on
// machines with only some of MIT's packages.
func confFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if includeName.MatchString(e.Name()) && !strings.HasPrefix(e.Name(), ".") {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	return files, nil
}
