package sasl

// Either returns a server that offers both mechanisms. The client's first token selects the
// mechanism: GSSAPI tokens begin with 0x60, and DIGEST-MD5 clients send an empty first token. If
// gssapi or digest is nil, Either returns the other.
func Either(gssapi, digest Server) Server {
	switch {
	case gssapi == nil:
		return digest
	case digest == nil:
		return gssapi
	}
	return &either{gssapi: gssapi, digest: digest}
}

type either struct{ gssapi, digest Server }

func (e *either) New() Exchange { return &eitherExchange{of: e} }

// eitherExchange selects the mechanism by the first token.
type eitherExchange struct {
	of     *either
	chosen Exchange
}

// firstOfGSSAPI is the tag of an initial token (RFC 2743, 3.1).
const firstOfGSSAPI = 0x60

func (x *eitherExchange) Step(token []byte) (reply []byte, id string, done bool, err error) {
	if x.chosen == nil {
		chosen := x.of.digest
		if len(token) > 0 && token[0] == firstOfGSSAPI {
			chosen = x.of.gssapi
		}
		x.chosen = chosen.New()
	}
	return x.chosen.Step(token)
}
