package clientflags

import (
	"errors"

	"github.com/gozkd/gozkd/sasl"
)

func fromKerberos(m *sasl.LoginModule, p props) (sasl.Client, error) {
	return nil, errors.New("Kerberos is not supported yet")
}
