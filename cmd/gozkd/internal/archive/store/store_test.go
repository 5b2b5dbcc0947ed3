package store

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeS3 answers as an S3 server does, at the edge of the network. It fails the requests that fail
// says.
type fakeS3 struct {
	mu      sync.Mutex
	objects map[string][]byte
	fail    func(r *http.Request) int // a status, or 0
	region  string                    // the region that requests must be signed for; empty: any
	named   bool                      // the region is named by a header, not in the answer
	tries   int
}

// listed is S3's answer to a listing, in the old and in the new form.
type listed struct {
	XMLName               xml.Name `xml:"ListBucketResult"`
	IsTruncated           bool
	NextContinuationToken string `xml:",omitempty"`
	EncodingType          string `xml:",omitempty"`
	Contents              []listedObject
}

const fakeModified = "2026-11-22T08:00:00Z"

type listedObject struct {
	Key          string
	Size         int
	LastModified string
}

func (f *fakeS3) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tries++
	region, valid := signature(r, body)
	switch {
	case err != nil || !valid:
		w.WriteHeader(http.StatusForbidden)
		return
	case f.region != "" && f.region != region && f.named:
		w.Header().Set("X-Amz-Bucket-Region", f.region)
		w.WriteHeader(http.StatusMovedPermanently)
		return
	case f.region != "" && f.region != region:
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?>
			<Error><Code>AuthorizationHeaderMalformed</Code><Message>the region is wrong; expecting '%[1]s'</Message><Region>%[1]s</Region></Error>`, f.region)
		return
	}
	if status := f.fail(r); status != 0 {
		w.WriteHeader(status)
		return
	}
	key := strings.TrimPrefix(r.URL.Path, "/bucket/")
	w.Header().Set("Last-Modified", "Sun, 22 Nov 2026 08:00:00 GMT")
	switch data, there := f.objects[key]; {
	case r.Method == http.MethodGet && r.URL.Query().Get("list-type") == "2":
		f.list(w, r.URL.Query())
	case r.Method == http.MethodPut:
		f.objects[key] = body
		w.Header().Set("ETag", `"0"`)
	case r.Method == http.MethodDelete:
		delete(f.objects, key)
		w.WriteHeader(http.StatusNoContent)
	case !there:
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `<Error><Code>NoSuchKey</Code><Message>no such key</Message></Error>`) // the client has gone, or reads it
	default:
		w.Header().Set("ETag", `"0"`)
		w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		_, _ = w.Write(data) // the same
	}
}

// signature reports whether the signature of a request is right, and the region that it names. It
// computes what Amazon describes from the request as it was sent.
func signature(r *http.Request, body []byte) (region string, valid bool) {
	auth := strings.NewReplacer("=", " ", ",", "").Replace(r.Header.Get("Authorization"))
	var scope, headers, got string
	if n, err := fmt.Sscanf(auth, "AWS4-HMAC-SHA256 Credential %s SignedHeaders %s Signature %s", &scope, &headers, &got); n != 3 || err != nil {
		return "", false
	}
	hash := func(data []byte) string { sum := sha256.Sum256(data); return hex.EncodeToString(sum[:]) }
	path, query, _ := strings.Cut(r.RequestURI, "?")
	canonical := r.Method + "\n" + path + "\n" + strings.Join(slices.Sorted(slices.Values(strings.Split(query, "&"))), "&") + "\n"
	r.Header.Set("Host", r.Host)
	for _, h := range strings.Split(headers, ";") {
		canonical += h + ":" + r.Header.Get(h) + "\n"
	}
	canonical += "\n" + headers + "\n" + hash(body)
	user, scope, _ := strings.Cut(scope, "/")
	key := []byte("AWS4secret")
	for _, part := range append(strings.Split(scope, "/"), "AWS4-HMAC-SHA256\n"+r.Header.Get("X-Amz-Date")+"\n"+scope+"\n"+hash([]byte(canonical))) {
		mac := hmac.New(sha256.New, key)
		_, _ = mac.Write([]byte(part)) // never fails
		key = mac.Sum(nil)
	}
	return strings.Split(scope, "/")[1], user == "key" && got == hex.EncodeToString(key) && r.Header.Get("X-Amz-Content-Sha256") == hash(body)
}

func (f *fakeS3) list(w http.ResponseWriter, q url.Values) {
	const page = 3
	var answer listed
	after := max(q.Get("start-after"), q.Get("continuation-token"))
	for _, key := range slices.Sorted(maps.Keys(f.objects)) {
		if !strings.HasPrefix(key, q.Get("prefix")) || key <= after {
			continue
		}
		if len(answer.Contents) == page {
			answer.IsTruncated, answer.NextContinuationToken = true, answer.Contents[page-1].Key
			break
		}
		answer.Contents = append(answer.Contents, listedObject{key, len(f.objects[key]), fakeModified})
	}
	for i := range answer.Contents {
		if answer.EncodingType = q.Get("encoding-type"); answer.EncodingType == "url" {
			answer.Contents[i].Key = url.QueryEscape(answer.Contents[i].Key)
		}
	}
	_ = xml.NewEncoder(w).Encode(answer) // the client has gone, or reads it
}

func openFake(t *testing.T, fail func(*http.Request) int) (Store, *fakeS3) {
	t.Helper()
	f := &fakeS3{objects: make(map[string][]byte), fail: fail}
	web := httptest.NewServer(f)
	t.Cleanup(web.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	s, err := Open("s3://bucket/some/prefix?region=eu-west-1&endpoint="+web.URL, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.(*bucket).client.CloseIdleConnections() })
	return s, f
}

func well(*http.Request) int { return 0 }

// A directory and a bucket keep objects in the same way.
func TestStores_Keep(t *testing.T) {
	open := map[string]func(t *testing.T) Store{
		"dir": func(t *testing.T) Store {
			s, err := Open("file:///"+strings.TrimPrefix(filepath.ToSlash(t.TempDir()), "/"), nil)
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
		"s3": func(t *testing.T) Store { s, _ := openFake(t, well); return s },
	}
	for name, open := range open {
		t.Run(name, func(t *testing.T) {
			s, ctx := open(t), t.Context()
			if list, err := s.List(ctx, "", ""); err != nil || len(list) != 0 {
				t.Fatal(list, err)
			}
			names := []string{"a/base/1/0", "a/base/1/1.last", "a/log/1", "a/log/2", "a/log/3", "a/log/4", "b/log/1"}
			for i, name := range names {
				if err := s.Put(ctx, name, bytes.Repeat([]byte("x"), i)); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Put(ctx, names[6], []byte("again")); err != nil {
				t.Fatal(err)
			}
			for _, c := range []struct{ prefix, after, want string }{
				{"", "", strings.Join(names, " ")}, {"a/", "", strings.Join(names[:6], " ")}, {"a/log/", "a/log/2", "a/log/3 a/log/4"},
				{"a/log/", "a/log/25", "a/log/3 a/log/4"}, {"c/", "", ""},
			} {
				list, err := s.List(ctx, c.prefix, c.after)
				var got []string
				for _, o := range list {
					got = append(got, o.Name)
					if o.Modified.IsZero() || name == "s3" && o.Modified.Format(time.RFC3339) != fakeModified {
						t.Errorf("%s is from %v", o.Name, o.Modified)
					}
				}
				if err != nil || strings.Join(got, " ") != c.want {
					t.Errorf("%s after %s: %v, %v", c.prefix, c.after, got, err)
				}
			}
			if got, err := s.Get(ctx, names[6]); err != nil || string(got) != "again" {
				t.Errorf("%q %v", got, err)
			}
			for range 2 {
				if err := s.Delete(ctx, "a/log/2"); err != nil {
					t.Error(err)
				}
			}
			if _, err := s.Get(ctx, "a/log/2"); !errors.Is(err, ErrNotFound) {
				t.Error(err)
			}
		})
	}
}

// The client tries again after an error of the server, and says what a refusal is about.
func TestS3_Errors(t *testing.T) {
	n := 0
	s, f := openFake(t, func(*http.Request) int {
		if n++; n%2 == 1 {
			return http.StatusServiceUnavailable
		}
		return 0
	})
	if err := s.Put(t.Context(), "a", []byte("x")); err != nil || f.tries != 2 {
		t.Errorf("after %d tries: %v", f.tries, err)
	}
	s, _ = openFake(t, func(*http.Request) int { return http.StatusForbidden })
	if err := s.Put(t.Context(), "a", nil); err == nil || !strings.Contains(err.Error(), "s3://bucket/some/prefix/: Access Denied") {
		t.Error(err)
	}
	if list, err := s.List(t.Context(), "", ""); err == nil {
		t.Error("listed ", list)
	}
}

// Nothing is written where no file system is mounted, and what a crash has left is no object.
func TestDir_Edges(t *testing.T) {
	root := t.TempDir()
	s, err := Open("file:///"+strings.TrimPrefix(filepath.ToSlash(filepath.Join(root, "none")), "/"), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, listErr := s.List(t.Context(), "", "")
	for _, err := range []error{s.Put(t.Context(), "a/b", nil), listErr} {
		if err == nil || !strings.Contains(err.Error(), "none does not exist: make it, or mount its file system") {
			t.Error(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(root, "none", "a"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "none", "a", unfinished+"1"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if list, err := s.List(t.Context(), "", ""); err != nil || len(list) > 0 {
		t.Error(list, err)
	}
}

func TestOpen_Refuses(t *testing.T) {
	for location, want := range map[string]string{
		"/backup":                                   "neither file:///DIRECTORY nor s3://BUCKET/PREFIX",
		"file://host/backup":                        "neither",
		"s3:///prefix":                              "neither",
		"s3://key:secret@bucket":                    "the URL has a password",
		"s3://key:secret/+@bucket":                  "is no URL",
		"minio://key:secret@bucket/":                "the URL has a password",
		"minio://bucket/?key=secret":                `archive: "minio://bucket/?(hidden)" is neither`,
		"file:relative?key=secret":                  `in "file:relative?(hidden)" the name`,
		"s3://b?endpoint=http://a:secret@minio:900": "the URL has a password",
		"s3://b?endpoint=http://a:secret/@minio":    "is not http://HOST:PORT",
		"s3://bucket?acl=private":                   "a parameter other than endpoint and region",
		"s3://bucket?secret=x&secret2":              "a parameter other than endpoint and region",
		"s3://bucket?endpoint=minio:900":            "is not http://HOST:PORT",
		"s3://b":                                    `"s3://b": Bucket name cannot be shorter than 3 characters`,
		"s3://../prefix?endpoint=http://h":          "Bucket name",
		"s3://bucket/" + strings.Repeat("x", 1025):  "cannot be longer than 1024",
		"%zz://":              "is no URL",
		"file:///backup/zk#1": "write %23",
		"file:///backup/zk?1": "write %23",
		"s3://bucket/zk#1":    "write %23",
	} {
		if _, err := Open(location, func(string) string { return "" }); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", location, err)
		}
	}
}

// In a URL a # and a ? of a name are escaped.
func TestOpen_Escaped(t *testing.T) {
	s, err := Open("file:///backup/zk%231%3f%20x", func(string) string { return "" })
	if err != nil || !strings.HasSuffix(s.String(), "zk#1? x") {
		t.Errorf("%v %v", s, err)
	}
}

// A directory that does not exist is missing. Nothing is said about object storage, or without a
// location.
func TestMissing(t *testing.T) {
	root := filepath.ToSlash(t.TempDir())
	for location, missing := range map[string]bool{"": false, "s3://bucket/zk": false, "file://" + root: false, "file://" + root + "/none": true} {
		if err := Missing(location); (err != nil) != missing || missing && !strings.Contains(err.Error(), "none does not exist: make it") {
			t.Errorf("%s: %v", location, err)
		}
	}
}
