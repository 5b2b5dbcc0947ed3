package store

import (
	"bytes"
	"cmp"
	"context"
	"crypto/md5" //nolint:gosec // what S3 compares
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/s3utils"
	"github.com/minio/minio-go/v7/pkg/signer"

	"github.com/gozkd/gozkd/internal/backoff"
)

const (
	maxTries   = 3
	maxRefusal = 1 << 20 // bytes that are read of the answer to a request that failed
)

// bucket is a bucket of object storage, or the objects in it with a prefix.
type bucket struct {
	client      *http.Client
	credentials *credentials.Credentials
	endpoint    *url.URL
	name        string
	prefix      string       // empty, or it ends in a slash
	region      atomic.Value // string: requests are signed for it
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
	b := &bucket{endpoint: e, name: u.Host, prefix: strings.Trim(u.Path, "/")}
	err = errors.Join(s3utils.CheckValidBucketName(b.name), s3utils.CheckValidObjectNamePrefix(b.prefix))
	if err != nil {
		return nil, fmt.Errorf("archive: %q: %w", ShownURL(u.String()), err)
	}
	if b.prefix != "" {
		b.prefix += "/"
	}
	region := cmp.Or(q.Get("region"), getenv("AWS_REGION"), getenv("AWS_DEFAULT_REGION"))
	b.region.Store(cmp.Or(region, s3utils.GetRegionFromURL(*e), "us-east-1"))
	b.credentials = credentials.NewChainCredentials([]credentials.Provider{
		&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{},
	})
	b.client = &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: patience}).DialContext,
			MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute, DisableCompression: true,
		},
		// A request is signed for one host.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return b, nil
}

func (b *bucket) String() string { return "s3://" + b.name + "/" + b.prefix }

func (b *bucket) Put(ctx context.Context, name string, data []byte) error {
	_, err := b.send(ctx, http.MethodPut, b.prefix+name, nil, data)
	return err
}

func (b *bucket) Get(ctx context.Context, name string) ([]byte, error) {
	data, err := b.send(ctx, http.MethodGet, b.prefix+name, nil, nil)
	if refused(err) == http.StatusNotFound {
		err = fmt.Errorf("%w: %s", ErrNotFound, name)
	}
	return data, err
}

func (b *bucket) List(ctx context.Context, prefix, after string) (list []Object, err error) {
	query := url.Values{"list-type": {"2"}, "encoding-type": {"url"}, "prefix": {b.prefix + prefix}}
	if after != "" {
		query.Set("start-after", b.prefix+after)
	}
	for {
		var page struct {
			IsTruncated           bool
			NextContinuationToken string
			EncodingType          string
			Contents              []struct {
				Key          string
				Size         int64
				LastModified time.Time
			}
		}
		answer, err := b.send(ctx, http.MethodGet, "", query, nil)
		if err != nil {
			return nil, err
		}
		err = xml.Unmarshal(answer, &page)
		for _, o := range page.Contents {
			if page.EncodingType == "url" { // XML cannot have some characters
				name, wrong := url.QueryUnescape(o.Key)
				o.Key, err = name, errors.Join(err, wrong)
			}
			list = append(list, Object{strings.TrimPrefix(o.Key, b.prefix), o.Size, o.LastModified})
		}
		if err == nil && page.IsTruncated && page.NextContinuationToken == "" {
			err = errors.New("the store does not say where the listing continues")
		}
		if err != nil {
			return nil, fmt.Errorf("archive: %v: list: %w", b, err)
		}
		if !page.IsTruncated {
			return list, nil
		}
		query.Set("continuation-token", page.NextContinuationToken)
	}
}

func (b *bucket) Delete(ctx context.Context, name string) error {
	_, err := b.send(ctx, http.MethodDelete, b.prefix+name, nil, nil)
	if refused(err) == http.StatusNotFound { // Google's storage refuses to delete a missing object
		return nil
	}
	return err
}

// refusal is the answer to a request that failed, as S3 encodes it in XML.
type refusal struct {
	Code, Message, Region string
	status                int
}

func (r *refusal) Error() string { return strings.TrimPrefix(r.Code+": "+r.Message, ": ") }

// refused returns the status of an answer that is an error; 0: err is another error, or none.
func refused(err error) int {
	r, _ := errors.AsType[*refusal](err)
	return cmp.Or(r, new(refusal)).status
}

// send sends a request, up to maxTries times, and returns the answer. Status 400 has many reasons,
// among them a request that was too slow and the wrong region, so it is no reason to give up.
func (b *bucket) send(ctx context.Context, method, key string, query url.Values, body []byte) (answer []byte, err error) {
	tries := 0
	backoff.Retry(ctx, func() bool {
		tries++
		answer, err = b.try(ctx, method, key, query, body)
		status := refused(err)
		return err == nil || tries == maxTries || status/100 == 4 && !slices.Contains([]int{400, 408, 429}, status)
	})
	if err != nil {
		return nil, fmt.Errorf("archive: %v: %w", b, cmp.Or(ctx.Err(), err))
	}
	return answer, nil
}

// try sends a request once. The error of an answer is a *refusal.
func (b *bucket) try(ctx context.Context, method, key string, query url.Values, body []byte) ([]byte, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	end := time.AfterFunc(patience, func() { stop(errStalled) })
	defer end.Stop()
	c, err := b.credentials.GetWithContext(&credentials.CredContext{Client: b.client, Context: ctx})
	if err != nil {
		return nil, err
	}
	region := b.region.Load().(string)
	req, err := http.NewRequestWithContext(ctx, method, b.url(region, key), nil)
	if err != nil {
		return nil, err
	}
	req.URL.RawQuery = query.Encode()
	sum := sha256.Sum256(body)
	req.Header.Set("X-Amz-Content-Sha256", hex.EncodeToString(sum[:]))
	if method == http.MethodPut {
		sum := md5.Sum(body) //nolint:gosec // the same
		req.Header.Set("Content-Md5", base64.StdEncoding.EncodeToString(sum[:]))
		req.Header.Set("Content-Type", "application/octet-stream")
	}
	if len(body) > 0 {
		req.Body, req.ContentLength = io.NopCloser(steady{bytes.NewReader(body), end}), int64(len(body))
	}
	sign := signer.SignV4 // without credentials it signs nothing
	if s3utils.IsAmazonOutpostsEndpoint(*b.endpoint) {
		sign = signer.SignV4Outposts
	}
	end.Reset(patience)
	res, err := b.client.Do(sign(*req, c.AccessKeyID, c.SecretAccessKey, c.SessionToken, region))
	if err != nil {
		return nil, err
	}
	defer res.Body.Close() //nolint:errcheck // what it had was read
	content := io.Reader(steady{res.Body, end})
	if res.StatusCode/100 != 2 {
		content = io.LimitReader(content, maxRefusal)
	}
	answer, err := io.ReadAll(content)
	if err != nil || res.StatusCode/100 == 2 {
		return answer, err
	}
	r := &refusal{status: res.StatusCode}
	_ = xml.Unmarshal(answer, r) // a proxy may answer in another format
	if r.Message == "" && r.status == http.StatusForbidden {
		r.Message = "Access Denied"
	}
	r.Message = cmp.Or(r.Message, strings.TrimSpace(res.Status+" "+res.Header.Get("Location")))
	if r.Code == "RequestTimeTooSkewed" {
		r.Message += " Set the clock of this machine."
	}
	r.Region = cmp.Or(r.Region, res.Header.Get("X-Amz-Bucket-Region"), region)
	if url.QueryEscape(r.Region) == r.Region { // it becomes a part of a host's name
		b.region.Store(r.Region) // for the next try
	}
	return nil, r
}

// url returns the URL of an object, or of the bucket if key is empty. The host names the bucket
// where the service demands that. Amazon has a host for each region.
func (b *bucket) url(region, key string) string {
	host, path := b.endpoint.Host, key
	e := *b.endpoint
	if s3utils.IsAmazonEndpoint(e) && !s3utils.IsAmazonFIPSEndpoint(e) && !s3utils.IsAmazonPrivateLinkEndpoint(e) {
		host = "s3.dualstack." + region + ".amazonaws.com"
		if strings.HasPrefix(region, "cn-") {
			host += ".cn"
		}
	}
	if s3utils.IsVirtualHostSupported(e, b.name) {
		host = b.name + "." + host
	} else {
		path = b.name + "/" + key
	}
	return b.endpoint.Scheme + "://" + host + "/" + s3utils.EncodePath(path)
}
