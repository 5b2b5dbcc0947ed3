package store

import (
	"bytes"
	"cmp"
	"context"
	"crypto/md5" //nolint:gosec // what S3 compares
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// bucket is a bucket of object storage, or the objects in it with a prefix.
type bucket struct {
	client    minio.Core // whose methods send one request each; those of Client would link more
	transport *http.Transport
	dial      func(ctx context.Context, network, address string) (net.Conn, error)
	name      string
	prefix    string // empty, or it ends in a slash
}

// errParameter does not name the parameter, which may be a secret.
var errParameter = errors.New("archive: the URL has a parameter other than endpoint and region")

// newS3 returns the bucket of a URL: s3://BUCKET/PREFIX?endpoint=https://HOST:PORT&region=REGION.
// Without endpoint, AWS_ENDPOINT_URL_S3 and AWS_ENDPOINT_URL count, then Amazon's.
func newS3(u *url.URL, getenv func(string) string) (Store, error) {
	q := u.Query()
	for key := range q {
		if key != "endpoint" && key != "region" {
			return nil, errParameter
		}
	}
	endpoint := cmp.Or(q.Get("endpoint"), getenv("AWS_ENDPOINT_URL_S3"), getenv("AWS_ENDPOINT_URL"), "https://s3.amazonaws.com")
	e, err := url.Parse(endpoint)
	if err == nil && e.User != nil {
		return nil, errPassword
	}
	if err != nil || e.Scheme != "http" && e.Scheme != "https" || e.Host == "" || strings.Trim(e.Path, "/") != "" {
		return nil, fmt.Errorf("archive: the endpoint %q is not http://HOST:PORT or https://HOST:PORT", ShownURL(endpoint))
	}
	transport, err := minio.DefaultTransport(e.Scheme == "https")
	if err != nil {
		return nil, err
	}
	client, err := minio.New(e.Host, &minio.Options{
		Creds: credentials.NewChainCredentials([]credentials.Provider{
			&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{},
		}),
		Secure: e.Scheme == "https", Transport: transport, MaxRetries: 3,
		Region: cmp.Or(q.Get("region"), getenv("AWS_REGION"), getenv("AWS_DEFAULT_REGION")),
	})
	if err != nil {
		return nil, fmt.Errorf("archive: %w", err)
	}
	b := &bucket{transport: transport, name: u.Host, prefix: strings.Trim(u.Path, "/")}
	b.client.Client, b.dial, transport.DialContext = client, transport.DialContext, b.dialSteady
	if b.prefix != "" {
		b.prefix += "/"
	}
	return b, nil
}

func (b *bucket) String() string { return "s3://" + b.name + "/" + b.prefix }

func (b *bucket) Put(ctx context.Context, name string, data []byte) error {
	sum := md5.Sum(data) //nolint:gosec // the same
	_, err := b.client.PutObject(ctx, b.name, b.prefix+name, bytes.NewReader(data), int64(len(data)),
		base64.StdEncoding.EncodeToString(sum[:]), "", minio.PutObjectOptions{ContentType: "application/octet-stream"})
	return b.explain(err)
}

func (b *bucket) Get(ctx context.Context, name string) (data []byte, err error) {
	body, _, _, err := b.client.GetObject(ctx, b.name, b.prefix+name, minio.GetObjectOptions{})
	if err == nil {
		data, err = io.ReadAll(body)
		err = errors.Join(err, body.Close())
	}
	if minio.ToErrorResponse(err).StatusCode == http.StatusNotFound {
		return nil, fmt.Errorf("%w: %s", ErrNotFound, name)
	}
	return data, b.explain(err)
}

func (b *bucket) List(ctx context.Context, prefix, after string) (list []Object, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the listing after an error
	options := minio.ListObjectsOptions{Prefix: b.prefix + prefix, Recursive: true}
	if after != "" {
		options.StartAfter = b.prefix + after
	}
	for o := range b.client.ListObjectsIter(ctx, b.name, options) {
		if o.Err != nil {
			return nil, b.explain(o.Err)
		}
		list = append(list, Object{strings.TrimPrefix(o.Key, b.prefix), o.Size, o.LastModified})
	}
	return list, ctx.Err()
}

func (b *bucket) Delete(ctx context.Context, name string) error {
	return b.explain(b.client.RemoveObject(ctx, b.name, b.prefix+name, minio.RemoveObjectOptions{}))
}

// explain says where an error comes from.
func (b *bucket) explain(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("archive: %v: %w", b, err)
}
