package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// answerTimeout bounds the wait for the first byte of the answer: the server writes the backup to
// its own disk first.
const answerTimeout = 10 * time.Minute

func isURL(s string) bool { return strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://") }

// snapshotURL returns the URL of the snapshot command, unless from names a path itself.
func snapshotURL(from string) (string, error) {
	u, err := url.Parse(from)
	if err != nil {
		return "", err
	}
	if u.Path == "" || u.Path == "/" {
		u.Path, u.RawQuery = "/commands/snapshot", "streaming=true"
	}
	return u.String(), nil
}

// nobody is a user that no ACL names. The admin endpoint requires a user in each request.
const nobody = "digest nobody:nobody"

// download writes the answer of the admin endpoint to a new file, and syncs it.
func download(ctx context.Context, from, auth, path string) (err error) {
	where, err := snapshotURL(from)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, where, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", auth)
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = answerTimeout
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 1024)) // an error does not matter: the status is enough
		hint := ""
		if auth == nobody && (resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden) {
			hint = "; use --auth-file to name an authorized user"
		}
		return fmt.Errorf("%s: %s: %s%s", where, resp.Status, strings.Join(strings.Fields(string(text)), " "), hint)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err = io.Copy(f, resp.Body); err != nil {
		err = fmt.Errorf("%s: the connection broke before the end of the backup: %w", where, err)
	} else {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
