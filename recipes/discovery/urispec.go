package discovery

import (
	"fmt"
	"strings"

	"github.com/gozkd/gozkd/recipes"
)

type uriPart struct {
	Value    string `json:"value"`
	Variable bool   `json:"variable"`
}

// uriParts is an Instance.URI in JSON.
type uriParts struct {
	Parts []uriPart `json:"parts"`
}

// uriPartsOf splits an Instance.URI. A variable without a name is left out.
func uriPartsOf(spec string) (parts []uriPart, err error) {
	rest := spec
	for rest != "" {
		i := strings.IndexAny(rest, "{}")
		switch {
		case i < 0:
			return append(parts, uriPart{rest, false}), nil
		case i > 0:
			parts = append(parts, uriPart{rest[:i], false})
		}
		opening := rest[i] == '{'
		rest = rest[i+1:]
		end := strings.IndexAny(rest, "{}")
		if !opening || end < 0 || rest[end] == '{' {
			return nil, fmt.Errorf("discovery: %w: braces in the URI %q do not match", recipes.ErrArgument, spec)
		}
		if end > 0 {
			parts = append(parts, uriPart{strings.TrimSpace(rest[:end]), true})
		}
		rest = rest[end+1:]
	}
	return parts, nil
}

// spec joins the parts. Braces in text become the variables that stand for braces.
func (p uriParts) spec() string {
	var b strings.Builder
	braces := strings.NewReplacer("{", "{[}", "}", "{]}")
	for _, part := range p.Parts {
		if part.Variable {
			b.WriteString("{" + part.Value + "}")
		} else {
			b.WriteString(braces.Replace(part.Value))
		}
	}
	return b.String()
}
