// Package testca is a certificate authority for tests. A test makes a CA, issues certificates with
// any subject, names and validity, and gets PEM files and *tls.Config of both sides.
//
// Certificates are valid from 1990 to 2190 unless a test says otherwise, so that they can be used
// in bubbles of testing/synctest, whose time begins in the year 2000.
package testca
