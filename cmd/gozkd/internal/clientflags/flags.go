package clientflags

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"strings"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/cmd/gozkd/internal/tlsconf"
)

// TLSUsage describes the flags of TLS, for the usage text of a command that dials no client port.
const TLSUsage = `  --tls                      connect with TLS; the next five flags imply it
  --cacert FILE              PEM file with the authorities that the certificate of a server must come
                             from (those of the system)
  --cert FILE, --key FILE    PEM files with the client's certificate and key; one file may hold both
  --tls-server-name NAME     the name that a server's certificate must have (the host that is dialed)
  --insecure-skip-verify     accept any certificate: whoever controls the network can be the server
`

// Usage describes all flags, for the usage text of a command.
const Usage = TLSUsage + `  --sasl-user NAME           authenticate with SASL (DIGEST-MD5) ...
  --sasl-password-file FILE  ... and the password in this file
  --jaas FILE                authenticate with the section Client of this JAAS file
  -client-configuration FILE  the properties of ZooKeeper's client; flags win over the file, and the
                             file over CLIENT_JVMFLAGS
`

// Flags are the values of the flags. The zero value is ready for Register.
type Flags struct {
	tls, insecure              bool
	caCert, cert, key          string
	serverName                 string
	saslUser, saslPasswordFile string
	jaas                       string
	// Configuration is a file with properties of ZooKeeper's client.
	Configuration string

	set *flag.FlagSet // nil before Register
}

// Register adds the flags to fs.
func (f *Flags) Register(fs *flag.FlagSet) {
	f.RegisterTLS(fs)
	fs.StringVar(&f.saslUser, "sasl-user", "", "")
	fs.StringVar(&f.saslPasswordFile, "sasl-password-file", "", "")
	fs.StringVar(&f.jaas, "jaas", "", "")
	fs.StringVar(&f.Configuration, "client-configuration", "", "")
}

// RegisterTLS adds the flags of TLS to fs.
func (f *Flags) RegisterTLS(fs *flag.FlagSet) {
	f.set = fs
	fs.BoolVar(&f.tls, "tls", false, "")
	fs.StringVar(&f.caCert, "cacert", "", "")
	fs.StringVar(&f.cert, "cert", "", "")
	fs.StringVar(&f.key, "key", "", "")
	fs.StringVar(&f.serverName, "tls-server-name", "", "")
	fs.BoolVar(&f.insecure, "insecure-skip-verify", false, "")
}

func (f *Flags) check() error {
	empty := f.empty()
	switch {
	case empty != "":
		return fmt.Errorf("--%s is empty, as from a variable that is not set: name a value, or leave the flag out", empty)
	case f.key != "" && f.cert == "":
		return errors.New("--key needs --cert, the certificate of that key")
	case f.insecure && (f.caCert != "" || f.serverName != ""):
		return errors.New("--insecure-skip-verify accepts any certificate: leave out --cacert and --tls-server-name, or this flag")
	case (f.saslUser == "") != (f.saslPasswordFile == ""):
		return errors.New("--sasl-user and --sasl-password-file belong together")
	case f.saslUser != "" && f.jaas != "":
		return errors.New("give either --sasl-user or --jaas")
	}
	return nil
}

// empty returns a flag that was given without a value, or "".
func (f *Flags) empty() (name string) {
	if f.set == nil {
		return ""
	}
	ours := flag.NewFlagSet("", flag.ContinueOnError)
	new(Flags).Register(ours)
	f.set.Visit(func(given *flag.Flag) {
		if ours.Lookup(given.Name) != nil && given.Value.String() == "" {
			name = given.Name
		}
	})
	return name
}

// Parse is cli.ParseFlags of a flag set that has f's flags, and Resolve.
func (f *Flags) Parse(env cli.Env, fs *flag.FlagSet, args []string) (words []string, s *Security, err error) {
	if words, err = cli.ParseFlags(fs, args); err == nil {
		s, err = f.Resolve(env)
	}
	return words, s, err
}

// Resolve reads the named files. The error is a cli.UsageError if flags contradict each other.
func (f *Flags) Resolve(env cli.Env) (*Security, error) {
	if err := f.check(); err != nil {
		return nil, cli.UsageError{Err: err}
	}
	p := fromEnvironment(env.Getenv)
	if f.Configuration != "" {
		more, err := readProperties(f.Configuration)
		if err != nil {
			return nil, fmt.Errorf("-client-configuration: %w", err)
		}
		maps.Copy(p, more)
	}
	s := &Security{insecure: f.insecure, serverName: f.serverName}
	var err error
	if s.mechanism, err = f.sasl(p, env); err != nil {
		return nil, err
	}
	if !f.WantTLS() && !p.isTrue("zookeeper.client.secure") {
		return s, nil
	}
	options, err := p.tlsOptions()
	if err != nil {
		return nil, err
	}
	const pem = "PEM"
	if f.caCert != "" {
		options.TrustStore = tlsconf.Store{Location: f.caCert, Type: pem}
	}
	if f.cert != "" {
		options.KeyStore = tlsconf.Store{Location: f.cert, Type: pem, Key: f.key}
	}
	s.hasCert = options.KeyStore.Location != ""
	log := hclog.New(&hclog.LoggerOptions{Name: "gozkd", Level: hclog.Warn, Output: env.Err})
	if s.source, err = tlsconf.Load(options, log); err != nil {
		return nil, fmt.Errorf("TLS: %w", f.inFlags(err))
	}
	return s, nil
}

// WantTLS reports whether a flag asks for TLS, not only a property.
func (f *Flags) WantTLS() bool {
	return f.tls || f.insecure || f.caCert != "" || f.cert != "" || f.serverName != ""
}

// inFlags replaces the keys of properties in an error by the flags that were given instead.
func (f *Flags) inFlags(err error) error {
	text := err.Error()
	if f.caCert != "" {
		text = strings.ReplaceAll(text, prefix+"trustStore.location", "--cacert")
	}
	if f.cert != "" {
		text = strings.NewReplacer(prefix+"keyStore.location", "--cert", tlsconf.BareKey(prefix), "--key").Replace(text)
	}
	return errors.New(text)
}
