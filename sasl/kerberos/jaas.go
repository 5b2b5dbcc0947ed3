package kerberos

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/gozkd/gozkd/sasl"
)

// ServerLogin returns the configuration of a server from a Krb5LoginModule of a JAAS file: its
// options useKeyTab, keyTab and principal. The caller adds the Mapping.
func ServerLogin(m sasl.LoginModule, conf *Conf) (ServerConfig, error) {
	c := ServerConfig{KeyTab: keyTab(m), Principal: m.Options["principal"], ClockSkew: conf.ClockSkew()}
	switch {
	case c.KeyTab == "":
		return c, errors.New(`kerberos: the Krb5LoginModule of the server needs useKeyTab=true and keyTab="FILE"`)
	case c.Principal == "":
		return c, errors.New(`kerberos: the Krb5LoginModule of the server needs principal="zookeeper/HOST@REALM"`)
	}
	if c.Principal != "*" && !strings.Contains(c.Principal, "@") {
		if conf.DefaultRealm() == "" {
			return c, fmt.Errorf("kerberos: the principal %q has no realm, and krb5.conf has no default_realm", c.Principal)
		}
		c.Principal += "@" + conf.DefaultRealm()
	}
	return c, nil
}

// ClientLogin returns the configuration of a client from a Krb5LoginModule of a JAAS file: its
// options useKeyTab, keyTab, useTicketCache, ticketCache and principal. cache is the ticket cache
// if ticketCache does not name one.
func ClientLogin(m sasl.LoginModule, conf *Conf, cache string) (ClientConfig, error) {
	c := ClientConfig{Conf: conf, KeyTab: keyTab(m), Principal: m.Options["principal"]}
	if m.Options["useTicketCache"] == "true" && c.KeyTab == "" {
		c.TicketCache = cmp.Or(m.Options["ticketCache"], cache)
	}
	if c.KeyTab == "" && c.TicketCache == "" {
		return c, errors.New(`kerberos: the Krb5LoginModule of the client needs useKeyTab=true and keyTab="FILE", or useTicketCache=true`)
	}
	return c, nil
}

// keyTab returns the keytab of a module, "" for none.
func keyTab(m sasl.LoginModule) string {
	if m.Options["useKeyTab"] != "true" {
		return ""
	}
	return strings.TrimPrefix(m.Options["keyTab"], "FILE:")
}
