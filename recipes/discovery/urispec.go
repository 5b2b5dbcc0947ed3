package discovery

import (
	"errors"
	"fmt"
	"strings"
)

// ErrURISpec means that the braces of a URISpec do not match.
var ErrURISpec = errors.New("discovery: braces in the URI spec do not match")

// uriPart is a part of a URISpec in JSON.
type uriPart struct {
	Value    string `json:"value"`
	Variable bool   `json:"variable"`
}

// uriParts is a URISpec in JSON.
type uriParts struct {
	Parts []uriPart `json:"parts"`
}

// parts splits a URISpec. A variable without a name is left out.
func (s URISpec) parts() (parts []uriPart, err error) {
	rest := string(s)
	for rest != "" {
		i := strings.IndexAny(rest, "{}")
		switch {
		case i < 0:
			return append(parts, uriPart{rest, false}), nil
		case i > 0:
			parts = append(parts, uriPart{rest[:i], false})
		}
		if rest[i] == '}' {
			return nil, fmt.Errorf("%w: %q", ErrURISpec, s)
		}
		rest = rest[i+1:]
		end := strings.IndexAny(rest, "{}")
		if end < 0 || rest[end] == '{' {
			return nil, fmt.Errorf("%w: %q", ErrURISpec, s)
		}
		if end > 0 {
			parts = append(parts, uriPart{strings.TrimSpace(rest[:end]), true})
		}
		rest = rest[end+1:]
	}
	return parts, nil
}

// spec joins the parts. Braces in text become the variables that stand for braces.
func (p uriParts) spec() URISpec {
	var b strings.Builder
	braces := strings.NewReplacer("{", "{[}", "}", "{]}")
	for _, part := range p.Parts {
		if part.Variable {
			b.WriteString("{" + part.Value + "}")
		} else {
			b.WriteString(braces.Replace(part.Value))
		}
	}
	return URISpec(b.String())
}
