package main

import (
	"errors"
	"fmt"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
	"github.com/gozkd/gozkd/sasl"
	"github.com/gozkd/gozkd/sasl/kerberos"
	"github.com/gozkd/gozkd/sasl/kerberos/principal"
	"github.com/gozkd/gozkd/server"
)

// mechanisms makes the server's mechanisms of SASL. Its zero value has none.
type mechanisms struct {
	log    hclog.Logger
	gssapi *kerberos.Server // the last one
}

// apply returns the mechanism that a configuration asks for, nil for none.
func (m *mechanisms) apply(c *config.Config) (sasl.Server, error) {
	var gssapi, digest sasl.Server
	if c.Auth.Kerberos.Class != "" {
		made, err := newKerberos(c.Kerberos, c.Auth.Kerberos, m.gssapi, m.log)
		if err != nil {
			return nil, fmt.Errorf("the Krb5LoginModule of %s: %w", c.Auth.JAASFile, err)
		}
		m.gssapi, gssapi = made, made
	}
	if len(c.Auth.Users) > 0 {
		digest = sasl.NewDigest(c.Auth.Users)
	}
	return sasl.Either(gssapi, digest), nil
}

// openFiles returns an error if a start would fail because of a file with keys, certificates or
// users.
func openFiles(c config.Config, log hclog.Logger) error {
	if _, err := (&portTLS{log: log}).prepare(c, new(server.Config)); err != nil {
		return err
	}
	_, err := (&mechanisms{log: log}).apply(&c)
	return err
}

// newKerberos returns the mechanism of a Krb5LoginModule. last is that of the previous
// configuration, nil if there was none: it remembers which requests were used.
func newKerberos(c config.Kerberos, m sasl.LoginModule, last *kerberos.Server, log hclog.Logger) (*kerberos.Server, error) {
	conf, err := kerberos.LoadConf(c.Conf)
	if err != nil {
		return nil, fmt.Errorf("java.security.krb5.conf: %w", err)
	}
	if c.RequireConf && conf.DefaultRealm() == "" {
		return nil, errors.New("requireKerberosConfig: krb5.conf has no default_realm in libdefaults; add it, or name another file with java.security.krb5.conf")
	}
	s, err := kerberos.ServerLogin(m, conf)
	if err != nil {
		return nil, err
	}
	s.Mapping = principal.Mapping{RemoveHost: c.RemoveHost, RemoveRealm: c.RemoveRealm}
	if s.Mapping.Rules, err = principal.ParseRules(c.AuthToLocal, conf.DefaultRealm()); err != nil {
		return nil, fmt.Errorf("security.auth_to_local: %w", err)
	}
	s.Logger = log.Named("kerberos")
	if last != nil {
		return last.Renew(s)
	}
	return kerberos.NewServer(s)
}
