package clientflags

import (
	"fmt"
	"os"
	"strings"

	"github.com/gozkd/gozkd/client"
)

// ReadAuthFile reads the credential in a file, such as "digest super:PASSWORD", if one is named.
func ReadAuthFile(file string) ([]client.Auth, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	scheme, credential, ok := strings.Cut(strings.TrimSpace(string(text)), " ")
	if !ok {
		return nil, fmt.Errorf("%s holds no credential: write SCHEME CREDENTIAL, such as digest super:PASSWORD", file)
	}
	return []client.Auth{{Scheme: scheme, Credential: []byte(credential)}}, nil
}
