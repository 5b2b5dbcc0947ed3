package restv2

import (
	_ "embed" // the OpenAPI file
	"net/http"
)

// OpenAPIPath is the path of the OpenAPI file. It is outside of /znodes/, so no znode has it.
const OpenAPIPath = "/openapi/v2.json"

//go:embed openapi.json
var openAPI []byte

// ServeOpenAPI answers with the OpenAPI file.
func ServeOpenAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache")
	_, _ = w.Write(openAPI) // the caller has gone
}
