// Package store keeps named objects in a directory, or in object storage that speaks S3's protocol.
package store

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// ErrNotFound means that there is no object of a name.
var ErrNotFound = errors.New("archive: no such object")

var errPassword = errors.New("archive: the URL has a password: give credentials by AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or in ~/.aws/credentials")

// Object is an object in a listing.
type Object struct {
	Name     string
	Size     int64
	Modified time.Time // by the clock of the store; zero: it does not say
}

// Store is a place for objects. Its methods may be called from any goroutine. After an error of Put
// the object may be there, completely, or not.
type Store interface {
	// Put writes an object completely or not at all, and replaces one of the same name.
	Put(ctx context.Context, name string, data []byte) error
	// Get returns an object, or ErrNotFound.
	Get(ctx context.Context, name string) ([]byte, error)
	// List returns the objects whose names have a prefix and are greater than after, by name.
	List(ctx context.Context, prefix, after string) ([]Object, error)
	// Delete removes an object. A missing object is no error.
	Delete(ctx context.Context, name string) error
	// String returns the place without credentials.
	String() string
}

// Open returns the store at file:///DIRECTORY or s3://BUCKET/PREFIX. It does not connect.
func Open(location string, getenv func(string) string) (Store, error) {
	u, err := url.Parse(location)
	if err != nil {
		return nil, fmt.Errorf("archive: %q is no URL: name it as file:///DIRECTORY or s3://BUCKET/PREFIX", ShownURL(location))
	}
	switch {
	case u.User != nil:
		return nil, errPassword
	case strings.Contains(location, "#"), u.Scheme == "file" && strings.Contains(location, "?"):
		// url.Parse leaves the rest out of the path: the archive would be in another place.
		return nil, fmt.Errorf("archive: in %q the name of the place ends before the # or ?: write %%23 for a # in a name, and %%3F for a ?", ShownURL(location))
	case u.Scheme == "file" && (u.Host == "" || u.Host == "localhost") && u.Path != "":
		return newDir(u.Path), nil
	case u.Scheme == "s3" && u.Host != "":
		return newS3(u, getenv)
	}
	return nil, fmt.Errorf("archive: %q is neither file:///DIRECTORY nor s3://BUCKET/PREFIX", ShownURL(location))
}

// Missing returns the error of a directory that does not exist, for a location that Open takes. It
// does not look at object storage.
func Missing(location string) error {
	u, err := url.Parse(location)
	if err != nil || u.Scheme != "file" {
		return err
	}
	return newDir(u.Path).check()
}

// ShownURL returns what a message may show of a user's URL: scheme, host and path. The rest may be
// secret. If it is unclear where the rest begins, nothing is shown.
func ShownURL(s string) string {
	const hidden = "(hidden)"
	u, err := url.Parse(s)
	if err != nil || u.User != nil || strings.ContainsAny(u.Host+u.Path, "@?#%&=;") || strings.ContainsAny(u.Opaque, "@?#%&=;:") {
		return hidden
	}
	if end := strings.IndexAny(s, "?#"); end >= 0 {
		return s[:end+1] + hidden
	}
	return s
}

// ShownPath returns ShownURL of a text that looks like a URL, and any other as it is.
func ShownPath(s string) string {
	if IsURL(s) || strings.Contains(s, "://") {
		return ShownURL(s)
	}
	return s
}

// IsURL reports whether s names a store.
func IsURL(s string) bool { return strings.HasPrefix(s, "file:") || strings.HasPrefix(s, "s3:") }
