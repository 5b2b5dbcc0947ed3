package clientflags

import (
	"fmt"
	"os"
	"strings"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/sasl"
	"github.com/gozkd/gozkd/sasl/kerberos"
)

// fromKerberos returns the mechanism of a Krb5LoginModule. Unlike Java's client it demands that the
// server prove its identity too.
func fromKerberos(m *sasl.LoginModule, p props, env cli.Env) (sasl.Client, error) {
	conf, err := kerberos.LoadConf(p.orDefault("java.security.krb5.conf", kerberos.DefaultConf))
	if err != nil {
		return nil, err
	}
	cache := env.Getenv("KRB5CCNAME")
	if cache == "" {
		cache = fmt.Sprintf("/tmp/krb5cc_%d", os.Getuid())
	}
	c, err := kerberos.ClientLogin(*m, conf, cache)
	if err != nil {
		return nil, err
	}
	c.Mutual = true
	c.Canonicalize = !strings.EqualFold(p["zookeeper.sasl.client.canonicalize.hostname"], "false")
	c.Service = p.orDefault("zookeeper.server.principal", p["zookeeper.sasl.client.username"])
	if realm := p["zookeeper.server.realm"]; realm != "" && !strings.Contains(c.Service, "@") {
		if c.Service == "" {
			c.Service = kerberos.DefaultService
		}
		c.Service += "@" + realm
	}
	return kerberos.NewClient(c)
}
