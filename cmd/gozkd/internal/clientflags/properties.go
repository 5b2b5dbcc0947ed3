package clientflags

import (
	"fmt"
	"strings"

	"github.com/magiconair/properties"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/tlsconf"
	"github.com/gozkd/gozkd/internal/secretfile"
)

// prefix is that of the keys for TLS.
const prefix = "zookeeper.ssl."

const maxProperties = 1 << 20

type props map[string]string

// readProperties reads a file in the format of Java.
func readProperties(path string) (props, error) {
	text, _, err := secretfile.Read(path, maxProperties)
	if err != nil {
		return nil, err
	}
	loader := properties.Loader{Encoding: properties.UTF8, DisableExpansion: true}
	parsed, err := loader.LoadBytes(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	p := props(parsed.Map())
	for key, value := range p {
		p[key] = strings.TrimSpace(value) // as Java's client does
	}
	return p, nil
}

// fromEnvironment returns the -D options for the Java machine of zkCli.sh: its shell splits them at
// white space, and knows no quotes there. The last line of a name counts.
func fromEnvironment(getenv func(string) string) props {
	p := props{}
	for _, variable := range []string{"CLIENT_JVMFLAGS", "JVMFLAGS"} {
		for _, word := range strings.Fields(getenv(variable)) {
			if option, ok := strings.CutPrefix(word, "-D"); ok {
				name, value, _ := strings.Cut(option, "=")
				p[name] = value
			}
		}
	}
	return p
}

// isTrue is Boolean.parseBoolean.
func (p props) isTrue(key string) bool { return strings.EqualFold(p[key], "true") }

// unsupported are keys that change what is verified, in ways that are not built.
var unsupported = []string{
	prefix + "context.supplier.class",
	prefix + "authProvider",
}

func (p props) tlsOptions() (tlsconf.Options, error) {
	o := tlsconf.Defaults(prefix, tlsconf.Client)
	for _, key := range unsupported {
		if p[key] != "" {
			return o, fmt.Errorf("%s=%s is not supported: it names a class of Java; leave it out", key, p[key])
		}
	}
	store := func(name string) tlsconf.Store {
		key := prefix + name + "."
		return tlsconf.Store{Location: p[key+"location"], Type: p[key+"type"], Password: p[key+"password"], PasswordFile: p[key+"passwordPath"]}
	}
	o.KeyStore, o.TrustStore = store("keyStore"), store("trustStore")
	o.Protocol, o.EnabledProtocols, o.CipherSuites = p[prefix+"protocol"], cli.List(p[prefix+"enabledProtocols"]), cli.List(p[prefix+"ciphersuites"])
	o.HostnameVerification = !strings.EqualFold(p[prefix+"hostnameVerification"], "false")
	o.CRL, o.OCSP, o.CRLLocation = p.isTrue(prefix+"crl"), p.isTrue(prefix+"ocsp"), p["gozkd.ssl.crlLocation"]
	return o, nil
}
