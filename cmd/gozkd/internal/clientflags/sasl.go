package clientflags

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/internal/secretfile"
	"github.com/gozkd/gozkd/sasl"
)

// sasl returns the mechanism to authenticate with, or nil.
func (f *Flags) sasl(p props, env cli.Env) (sasl.Client, error) {
	if f.saslUser != "" {
		password, err := readPassword(f.saslPasswordFile)
		if err != nil {
			return nil, fmt.Errorf("--sasl-password-file: %w", err)
		}
		return sasl.NewDigestClient(f.saslUser, password), nil
	}
	path, demanded := f.jaas, f.jaas != "" || p.isTrue("zookeeper.sasl.client")
	if path == "" && !strings.EqualFold(p["zookeeper.sasl.client"], "false") {
		// Java allows ==FILE, and a URL.
		path = strings.TrimPrefix(strings.TrimPrefix(p["java.security.auth.login.config"], "="), "file:")
	}
	if path == "" {
		return nil, nil
	}
	j, warning, err := sasl.LoadJAAS(path, func(name string) (string, bool) { v, ok := p[name]; return v, ok })
	if err != nil {
		return nil, err
	}
	if warning != "" {
		cli.Print(env.Err, "gozkd: warning: "+warning+"\n")
	}
	section := cmp.Or(p["zookeeper.sasl.clientconfig"], "Client")
	if len(j[section]) == 0 {
		if !demanded { // as Java's client: the file may be for other programs
			return nil, nil
		}
		return nil, fmt.Errorf("%s has no section %s, which would say as whom to authenticate", path, section)
	}
	mechanism, err := fromJAAS(j, section, p, env)
	if err != nil {
		return nil, fmt.Errorf("%s: section %s: %w", path, section, err)
	}
	return mechanism, nil
}

// fromJAAS returns the mechanism that a section is for.
func fromJAAS(j sasl.JAAS, section string, p props, env cli.Env) (sasl.Client, error) {
	if m := j.Module(section, sasl.DigestLoginModule); m != nil {
		user, password := m.Options["username"], m.Options["password"]
		if user == "" || password == "" {
			return nil, fmt.Errorf("%s needs username and password", m.Class)
		}
		return sasl.NewDigestClient(user, password), nil
	}
	if m := j.Module(section, sasl.KerberosLoginModule); m != nil {
		return fromKerberos(m, p, env)
	}
	return nil, fmt.Errorf("no module is supported: name %s or %s", sasl.DigestLoginModule, sasl.KerberosLoginModule)
}

const maxPassword = 4 << 10

// readPassword returns the content of a file without a line end.
func readPassword(path string) (string, error) {
	text, _, err := secretfile.Read(path, maxPassword)
	if err != nil {
		return "", err
	}
	password := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r")
	if password == "" || strings.ContainsAny(password, "\r\n") {
		return "", fmt.Errorf("%s: a password is one line that is not empty", path)
	}
	return password, nil
}
