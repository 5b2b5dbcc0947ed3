package main

import (
	"errors"
	"fmt"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
	"github.com/gozkd/gozkd/sasl"
	"github.com/gozkd/gozkd/sasl/kerberos"
	"github.com/gozkd/gozkd/sasl/kerberos/principal"
)

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
