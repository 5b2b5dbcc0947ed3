package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
)

// The bucket's own region is found by its first refusal, and kept.
func TestS3_Region(t *testing.T) {
	for _, named := range []bool{false, true} {
		s, f := openFake(t, well)
		f.region, f.named = "eu-central-2", named
		for i := range 2 {
			if err := s.Put(t.Context(), "a", nil); err != nil || f.tries != 2+i {
				t.Errorf("after %d tries: %v", f.tries, err)
			}
		}
		f.region = "evil.example/"
		if err := s.Put(t.Context(), "a", nil); err == nil || s.(*bucket).region.Load() != "eu-central-2" || f.tries != 3+maxTries {
			t.Errorf("requests are signed for %q: %v", s.(*bucket).region.Load(), err)
		}
	}
}

// The names of objects arrive as they are, and are signed as they are sent.
func TestS3_Names(t *testing.T) {
	s, f := openFake(t, well)
	for _, name := range []string{"a b", "a+b", "a%2Fb", "ü/€", "a=b&c?d#e", "~(x)!*'", "a//b", "0x1:2", "a\x01b"} {
		data := []byte(name)
		if err := s.Put(t.Context(), name, data); err != nil || string(f.objects["some/prefix/"+name]) != name {
			t.Errorf("%q: %v", name, err)
		}
		if got, err := s.Get(t.Context(), name); err != nil || string(got) != name {
			t.Errorf("%q: %q, %v", name, got, err)
		}
		if list, err := s.List(t.Context(), name[:1], ""); err != nil || len(list) != 1 || list[0].Name != name || list[0].Size != int64(len(data)) {
			t.Errorf("%q is listed as %v, %v", name, list, err)
		}
		if err := s.Delete(t.Context(), name); err != nil || len(f.objects) != 0 {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// A service gets requests at the host that it has for a bucket.
func TestS3_URL(t *testing.T) {
	for location, want := range map[string]string{
		"s3://zoo/a":                  "https://zoo.s3.dualstack.us-east-1.amazonaws.com/k",
		"s3://zoo/a?region=eu-west-3": "https://zoo.s3.dualstack.eu-west-3.amazonaws.com/k",
		"s3://zoo/a?region=cn-north-1&endpoint=https://s3.cn-north-1.amazonaws.com.cn": "https://zoo.s3.dualstack.cn-north-1.amazonaws.com.cn/k",
		"s3://zoo/a?endpoint=https://s3.eu-west-1.amazonaws.com":                       "https://zoo.s3.dualstack.eu-west-1.amazonaws.com/k",
		"s3://zoo.b/a?region=eu-west-3":                                                "https://s3.dualstack.eu-west-3.amazonaws.com/zoo.b/k",
		"s3://zoo/a?endpoint=https://s3-fips.us-east-2.amazonaws.com":                  "https://zoo.s3-fips.us-east-2.amazonaws.com/k",
		"s3://zoo/a?endpoint=https://bucket.vpce-1.s3.us-east-2.vpce.amazonaws.com":    "https://zoo.bucket.vpce-1.s3.us-east-2.vpce.amazonaws.com/k",
		"s3://zoo/a?endpoint=https://p.s3-outposts.us-east-2.amazonaws.com":            "https://p.s3-outposts.us-east-2.amazonaws.com/zoo/k",
		"s3://zoo/a?endpoint=https://storage.googleapis.com":                           "https://zoo.storage.googleapis.com/k",
		"s3://zoo/a?endpoint=https://oss-cn-hangzhou.aliyuncs.com":                     "https://zoo.oss-cn-hangzhou.aliyuncs.com/k",
		"s3://zoo/a?endpoint=http://minio:9000/":                                       "http://minio:9000/zoo/k",
		"s3://zoo/a?endpoint=http://[::1]:9000":                                        "http://[::1]:9000/zoo/k",
		"s3://zoo/a?endpoint=https://account.r2.cloudflarestorage.com&region=auto":     "https://account.r2.cloudflarestorage.com/zoo/k",
	} {
		s, err := Open(location, func(string) string { return "" })
		if err != nil {
			t.Fatal(err)
		}
		b := s.(*bucket)
		if got := b.url(b.region.Load().(string), "k"); got != want {
			t.Errorf("%s: %s, want %s", location, got, want)
		}
	}
	for variable, value := range map[string]string{"AWS_ENDPOINT_URL_S3": "http://h", "AWS_ENDPOINT_URL": "http://h", "AWS_REGION": "h", "AWS_DEFAULT_REGION": "h"} {
		s, err := Open("s3://zoo/a", func(name string) string { return map[string]string{variable: value}[name] })
		want := map[string]string{"http://h": "http://h/zoo/k", "h": "https://zoo.s3.dualstack.h.amazonaws.com/k"}[value]
		if b := s.(*bucket); err != nil || b.url(b.region.Load().(string), "k") != want {
			t.Errorf("%s has no effect: %v", variable, err)
		}
	}
}

// What an error says comes from the answer. Of an answer without end only the beginning is read.
func TestS3_Refusals(t *testing.T) {
	for _, c := range []struct {
		status     int
		body, want string
		tries      int
	}{
		{http.StatusBadRequest, "<Error><Code>InvalidDigest</Code><Message>The digest is wrong.</Message></Error>", "InvalidDigest: The digest is wrong.", maxTries},
		{http.StatusBadRequest, "<Error><Code>InvalidDigest</Code></Error>", "InvalidDigest: 400 Bad Request", maxTries},
		{http.StatusRequestEntityTooLarge, "<html><body>too large<br></html>", "413 Request Entity Too Large", 1},
		{http.StatusNotFound, "<Error><Code>NoSuchBucket</Code><Message>The bucket does not exist.</Message></Error>", "NoSuchBucket: The bucket does not exist.", 1},
		{http.StatusTemporaryRedirect, "", "307 Temporary Redirect http://127.0.0.1:1/", maxTries},
		{http.StatusForbidden, "", "Access Denied", 1},
		{http.StatusForbidden, "endless", "Access Denied", 1},
		{http.StatusBadRequest, "<Error><Code>RequestTimeout</Code><Message>idle</Message></Error>", "RequestTimeout: idle", maxTries},
		{http.StatusForbidden, "<Error><Code>RequestTimeTooSkewed</Code><Message>The clocks differ.</Message></Error>", "The clocks differ. Set the clock of this machine.", 1},
		{http.StatusTooManyRequests, "", "429 Too Many Requests", maxTries},
		{http.StatusBadGateway, "", "502 Bad Gateway", maxTries},
	} {
		tries := 0
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			tries++
			if c.status/100 == 3 {
				w.Header().Set("Location", "http://127.0.0.1:1/")
			}
			w.WriteHeader(c.status)
			for _, err := io.WriteString(w, c.body); c.body == "endless" && err == nil; {
				_, err = io.WriteString(w, c.body)
			}
		}))
		s, err := Open("s3://bucket?endpoint="+web.URL, func(string) string { return "" })
		if err != nil {
			t.Fatal(err)
		}
		s.(*bucket).credentials = credentials.NewStaticV4("key", "secret", "token")
		if err := s.Put(t.Context(), "a", nil); err == nil || !strings.HasSuffix(err.Error(), ": "+c.want) || tries != c.tries {
			t.Errorf("%d %q: after %d tries: %v", c.status, c.body, tries, err)
		}
		s.(*bucket).client.CloseIdleConnections()
		web.Close()
	}
}

// A listing whose pages cannot be followed is an error, and so is one that is no listing.
func TestS3_Listings(t *testing.T) {
	for answer, want := range map[string]string{
		"<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>":                                     "does not say where the listing continues",
		"<ListBucketResult><Contents><Key>a</Key><Size>x</Size></Contents></ListBucketResult>":                     "invalid syntax",
		"<ListBucketResult><EncodingType>url</EncodingType><Contents><Key>%zz</Key></Contents></ListBucketResult>": `invalid URL escape "%zz"`,
		"<ListBucketResult><Contents>": "unexpected EOF",
		"":                             "EOF",
	} {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }))
		s, err := Open("s3://bucket?endpoint="+web.URL, func(string) string { return "" })
		if err != nil {
			t.Fatal(err)
		}
		s.(*bucket).credentials = credentials.NewStaticV4("key", "secret", "")
		if list, err := s.List(t.Context(), "", ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", answer, list, err)
		}
		s.(*bucket).client.CloseIdleConnections()
		web.Close()
	}
}

// A request without credentials is not signed. A request of a caller who has gone is not repeated.
func TestS3_Edges(t *testing.T) {
	var got []http.Header
	ctx, cancel := context.WithCancel(t.Context())
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header)
		switch r.Method {
		case http.MethodPut:
			cancel()
			w.WriteHeader(http.StatusServiceUnavailable)
		case http.MethodDelete: // as Google's storage
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, "<Error><Code>NoSuchKey</Code></Error>")
		}
	}))
	defer web.Close()
	s, err := Open("s3://bucket?endpoint="+web.URL, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	defer s.(*bucket).client.CloseIdleConnections()
	s.(*bucket).credentials = credentials.NewStatic("", "", "", credentials.SignatureAnonymous)
	if _, err := s.Get(t.Context(), "a"); err != nil || got[0].Get("Authorization") != "" {
		t.Errorf("%v, %v", got, err)
	}
	s.(*bucket).credentials = credentials.NewStaticV4("key", "secret", "token")
	if err := s.Delete(t.Context(), "a"); err != nil || got[1].Get("X-Amz-Security-Token") != "token" {
		t.Errorf("%v, %v", got, err)
	}
	if err := s.Put(ctx, "a", []byte("abc")); !errors.Is(err, context.Canceled) || len(got) != 3 || got[2].Get("Content-Md5") != "kAFQmDzST7DWlj99KOF/cg==" {
		t.Errorf("%v, %v", got, err)
	}
}

// A request ends after a time without progress, and no sooner: not while it is slow.
func TestS3_Stalls(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	const slow, piece = patience - time.Second, 64 << 10
	head := func(length int) string {
		const last = "ETag: \"0\"\r\nLast-Modified: Sun, 22 Nov 2026 08:00:00 GMT\r\n\r\n"
		return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%s", length, last)
	}
	for name, c := range map[string]struct {
		answer func(conn net.Conn, r *http.Request) // by the server
		fails  bool
	}{
		"an upload that is not taken": {func(_ net.Conn, r *http.Request) {
			_, _ = io.CopyN(io.Discard, r.Body, piece)
			time.Sleep(2 * patience)
		}, true},
		"a slow upload": {func(conn net.Conn, r *http.Request) {
			for err := error(nil); err == nil; _, err = io.CopyN(io.Discard, r.Body, piece) {
				time.Sleep(slow)
			}
			_, _ = io.WriteString(conn, head(0))
		}, false},
		"no answer": {func(net.Conn, *http.Request) {}, true},
		"half an answer": {func(conn net.Conn, _ *http.Request) {
			_, _ = io.WriteString(conn, head(2)+"x")
		}, true},
		"slow": {func(conn net.Conn, _ *http.Request) {
			for _, part := range []string{head(4), "a", "b", "c", "d"} {
				time.Sleep(slow)
				_, _ = io.WriteString(conn, part)
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u, err := url.Parse("s3://bucket?region=r&endpoint=http://store")
				if err != nil {
					t.Fatal(err)
				}
				s, err := newS3(u, func(string) string { return "" })
				if err != nil {
					t.Fatal(err)
				}
				b := s.(*bucket)
				b.client.Transport.(*http.Transport).DialContext = func(context.Context, string, string) (net.Conn, error) {
					ours, theirs := net.Pipe()
					go func() { // ends with the connection
						defer theirs.Close()
						in := bufio.NewReader(theirs)
						for r, err := http.ReadRequest(in); err == nil; r, err = http.ReadRequest(in) {
							c.answer(theirs, r)
						}
					}()
					return ours, nil
				}
				defer time.Sleep(2 * patience) // until the server notices the end
				defer b.client.CloseIdleConnections()
				begun := time.Now()
				data, err := []byte("abcd"), error(nil)
				if strings.Contains(name, "upload") {
					err = s.Put(t.Context(), "a", make([]byte, 4*piece))
				} else {
					data, err = s.Get(t.Context(), "a")
				}
				switch took := time.Since(begun); {
				case c.fails && (!errors.Is(err, errStalled) || took < patience || took > 10*patience):
					t.Errorf("after %v: %v", took, err)
				case !c.fails && (err != nil || string(data) != "abcd" || took < 4*slow):
					t.Errorf("after %v: %q, %v", took, data, err)
				}
			})
		})
	}
}
