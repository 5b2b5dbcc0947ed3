package main

import (
	"fmt"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
	"github.com/gozkd/gozkd/sasl"
	"github.com/gozkd/gozkd/sasl/kerberos"
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
			return nil, fmt.Errorf("java.security.auth.login.config: Krb5LoginModule of %s: %w", c.Auth.JAASFile, err)
		}
		m.gssapi, gssapi = made, made
	}
	if len(c.Auth.Users) > 0 {
		digest = sasl.NewDigest(c.Auth.Users)
	}
	return sasl.Either(gssapi, digest), nil
}

// openFiles returns an error if a file with keys, certificates or users would fail a start.
func openFiles(c config.Config, log hclog.Logger) error {
	if _, err := (&portTLS{log: log}).prepare(c, new(server.Config)); err != nil {
		return err
	}
	_, err := (&mechanisms{log: log}).apply(&c)
	return err
}
