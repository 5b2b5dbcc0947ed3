package clientflags

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/sasl"
	"github.com/gozkd/gozkd/sasl/kerberos"
)

// fromKerberos returns the mechanism of a Krb5LoginModule. Unlike in Java, servers prove theirs.
func fromKerberos(m *sasl.LoginModule, p props, env cli.Env) (sasl.Client, error) {
	conf, err := kerberos.LoadConf(cmp.Or(p["java.security.krb5.conf"], kerberos.DefaultConf))
	if err != nil {
		return nil, err
	}
	c, err := kerberos.ClientLogin(*m, conf, cmp.Or(env.Getenv("KRB5CCNAME"), fmt.Sprintf("/tmp/krb5cc_%d", os.Getuid())))
	if err != nil {
		return nil, err
	}
	c.Mutual = true
	c.Canonicalize = !strings.EqualFold(p["zookeeper.sasl.client.canonicalize.hostname"], "false")
	c.Service = cmp.Or(p["zookeeper.server.principal"], p["zookeeper.sasl.client.username"])
	if realm := p["zookeeper.server.realm"]; realm != "" && !strings.Contains(c.Service, "@") {
		c.Service = cmp.Or(c.Service, kerberos.DefaultService) + "@" + realm
	}
	return kerberos.NewClient(c)
}
