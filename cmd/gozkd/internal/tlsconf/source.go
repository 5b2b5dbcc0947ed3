package tlsconf

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/internal/backoff"
)

const (
	// interval is how often Run looks at the files.
	interval = time.Second
	// settled is the age from which the time of a file's last change tells its content: a file that
	// changes twice within the resolution of the file system's clock has one time for two contents.
	settled = 3 * time.Second
)

// Source hands out configurations with the present content of the files, to any goroutine.
type Source struct {
	log     hclog.Logger
	current atomic.Pointer[content]
	shown   atomic.Pointer[Stats] // a copy of stats, for readers who must not wait for a slow disk

	mu      sync.Mutex // guards the fields below, and serializes changes
	options Options
	stamps  []stamp // of the files that were read last
	stats   Stats
	warned  time.Time // when the last line about the end of the certificate was written
	// seen is the hash of the files that were read last, zero if they could not be read; used is
	// that of the present content.
	seen, used [sha256.Size]byte
	// next was read last, and is not in use while its certificate is worse.
	next *content
}

// Stats counts the changes of a Source's files.
type Stats struct {
	Reloads  int64 // changes of the files that were taken over
	Failures int64 // changes that were refused
	// LastError is why the present content of the files is not in use; nil if it is.
	LastError error
	// Expires is when the certificate of this side ends; zero without one.
	Expires time.Time
}

// stamp tells whether a file has changed, without reading it.
type stamp struct {
	path string
	size int64
	time time.Time
	err  string
}

// Load reads the files. The caller runs Run so that changes are noticed.
func Load(o Options, log hclog.Logger) (*Source, error) {
	s := &Source{log: log}
	use, err := s.Prepare(o)
	if err != nil {
		return nil, err
	}
	use()
	return s, nil
}

// Prepare reads the files that o names. Nothing has changed until the caller calls use.
func (s *Source) Prepare(o Options) (use func(), err error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	files, err := o.files()
	if err != nil {
		return nil, err
	}
	stamps := stampsOf(files) // before the files are read, so that a change meanwhile is noticed
	in, err := readAll(files)
	if err != nil {
		return nil, err
	}
	c, err := build(o, in)
	if err == nil {
		err = c.worse(s.current.Load(), time.Now())
	}
	if err != nil {
		return nil, err
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.options, s.stamps, s.used = o, stamps, in.hash()
		s.seen = s.used
		s.take(c)
		s.show()
	}, nil
}

func (s *Source) take(c *content) {
	s.current.Store(c)
	s.stats.LastError, s.next = nil, nil
	for _, w := range slices.Concat(c.warn, c.protocol.notes) {
		s.log.Warn("TLS", "warning", w)
	}
	now := time.Now()
	s.warnOfExpiry(now)
	if c.cert != nil {
		for i, flaw := range c.flaws(now, c.options.Own) {
			if flaw != "" && i > 0 {
				s.log.Warn("TLS", "warning", c.keyStore()+": the certificate "+flaw)
			}
		}
		s.stats.Expires = c.cert.Leaf.NotAfter
		s.log.Info("certificate loaded", "file", c.options.KeyStore.Location, "subject", c.cert.Leaf.Subject.String(), "expires", c.cert.Leaf.NotAfter)
	}
}

// warnOfExpiry writes a line, once a day, if the certificate ends soon.
func (s *Source) warnOfExpiry(now time.Time) {
	if text := s.current.Load().expiry(now); text != "" && now.Sub(s.warned) >= 24*time.Hour {
		s.warned = now
		s.log.Warn("TLS", "warning", text)
	}
}

// Expiry returns a warning about a certificate of this side that ends soon or has expired, or "".
func (s *Source) Expiry() string { return s.current.Load().expiry(time.Now()) }

// Stats returns the present counts.
func (s *Source) Stats() Stats { return *s.shown.Load() }

// show publishes stats. s.mu is held.
func (s *Source) show() { s.shown.Store(new(s.stats)) }

// Server returns the configuration of the accepting side. It always uses the present content.
func (s *Source) Server() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) { return s.current.Load().forCaller(h), nil },
	}
}

// Client returns the configuration for dialing host, with the present content: dial again, ask
// again. The connection's state has verified PeerCertificates, but no VerifiedChains.
func (s *Source) Client(host string) *tls.Config { return s.current.Load().forHost(host) }

// Run looks at the files once a second until ctx ends.
func (s *Source) Run(ctx context.Context) {
	for backoff.Sleep(ctx, interval) {
		_ = s.Check() // it has logged the error
	}
}

// Check takes over changed files. Those that cannot be used are logged once, counted, and left.
func (s *Source) Check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.show()
	now := time.Now()
	s.warnOfExpiry(now)
	if err := s.current.Load().rotate(now); err != nil {
		return err
	}
	files, err := s.options.files()
	if err != nil {
		s.stamps = nil
		return s.refuse(err)
	}
	stamps := stampsOf(files)
	unsettled := func(f stamp) bool { return now.Sub(f.time) < settled }
	if slices.Equal(stamps, s.stamps) && !slices.ContainsFunc(stamps, unsettled) {
		return s.unchanged(now)
	}
	s.stamps = stamps
	in, err := readAll(files)
	if err != nil {
		s.seen, s.next = [sha256.Size]byte{}, nil
		return s.refuse(err)
	}
	switch hash := in.hash(); hash {
	case s.used:
		s.seen, s.stats.LastError, s.next = hash, nil, nil // a change that was undone
		return nil
	case s.seen:
		return s.unchanged(now)
	default:
		s.seen, s.next = hash, nil
	}
	c, err := build(s.options, in)
	if err != nil {
		return s.refuse(err)
	}
	s.next = c
	if old := s.current.Load(); c.worse(old, now) != nil {
		// Other files may have changed, too: a revocation must not wait for the certificate.
		s.current.Store(c.withCertificate(old.cert))
		s.used = [sha256.Size]byte{}
	}
	return s.unchanged(now)
}

// unchanged takes over what was read last, unless its certificate is worse than the one in use.
func (s *Source) unchanged(now time.Time) error {
	if s.next == nil {
		return s.stats.LastError
	}
	if err := s.next.worse(s.current.Load(), now); err != nil {
		return s.refuse(err)
	}
	s.used = s.seen
	s.stats.Reloads++
	s.take(s.next)
	return nil
}

// refuse notes that the present files cannot be used.
func (s *Source) refuse(err error) error {
	if s.stats.LastError != nil && s.stats.LastError.Error() == err.Error() {
		return err
	}
	s.stats.Failures++
	s.stats.LastError = err
	s.log.Error("changed TLS files cannot be used: the previous content stays in use", "error", err)
	return err
}

type file struct {
	key, path   string
	crl, secret bool
}

// files returns the files that o names.
func (o *Options) files() (list []file, err error) {
	add := func(s *Store, key, path string, secret bool) {
		if path != "" && s.Location != "" {
			list = append(list, file{key: key, path: path, secret: secret})
		}
	}
	keys, trust := &o.KeyStore, &o.TrustStore
	add(keys, o.key("keyStore.location"), keys.Location, false)
	add(keys, o.key("keyStore.passwordPath"), keys.PasswordFile, true)
	add(trust, o.key("trustStore.location"), trust.Location, false)
	add(trust, o.key("trustStore.passwordPath"), trust.PasswordFile, true)
	add(keys, BareKey(o.Prefix), keys.Key, true)
	if o.CRL {
		var paths []string
		paths, err = crlFiles(o.CRLLocation)
		for _, path := range paths {
			list = append(list, file{key: o.key(crlLocation), path: path, crl: true})
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", o.key(crlLocation), err)
		}
	}
	return list, err
}

func stampsOf(files []file) (stamps []stamp) {
	for _, f := range files {
		s := stamp{path: f.path}
		if info, err := os.Stat(f.path); err != nil {
			s.err = err.Error()
		} else {
			s.size, s.time = info.Size(), info.ModTime()
		}
		stamps = append(stamps, s)
	}
	return stamps
}

func readAll(files []file) (*input, error) {
	in := &input{data: make(map[string][]byte)}
	for _, f := range files {
		limit := int64(maxStore)
		if f.crl {
			in.crls, limit = append(in.crls, f.path), maxCRL
		}
		if err := in.read(f, limit); err != nil {
			return nil, err
		}
	}
	return in, nil
}

// hash identifies the content of all files.
func (in *input) hash() (sum [sha256.Size]byte) {
	h := sha256.New()
	for _, path := range slices.Sorted(maps.Keys(in.data)) {
		fmt.Fprintf(h, "%q %d\n", path, len(in.data[path]))
		h.Write(in.data[path])
	}
	return [sha256.Size]byte(h.Sum(nil))
}
