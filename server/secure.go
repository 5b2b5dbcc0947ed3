package server

import "errors"

// ensureTLS sets the fields for TLS that are zero to their defaults, and returns the errors in the
// others.
func (c *Config) ensureTLS() (errs []error) {
	setDefault(&c.HandshakeLimit, 250)
	if c.SecureListen != "" && c.SecureListener != nil {
		errs = append(errs, errors.New("server: SecureListen is set, and so is SecureListener: choose one"))
	}
	switch {
	case c.SecureListen == "" && c.SecureListener == nil && !c.PortUnification:
	case c.TLS == nil:
		errs = append(errs, errors.New("server: SecureListen, SecureListener and PortUnification need TLS, and TLS is not set"))
	case len(c.TLS.Certificates) == 0 && c.TLS.GetCertificate == nil && c.TLS.GetConfigForClient == nil:
		errs = append(errs, errors.New("server: TLS has no certificate: set Certificates, GetCertificate or GetConfigForClient"))
	default:
		errs = append(errs, errors.New("server: TLS for clients is not served yet"))
	}
	return errs
}
