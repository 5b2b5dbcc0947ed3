package web

import (
	"encoding/json"
	"io"
	"net/http"

	"github.com/gozkd/gozkd/web/internal/answer"
	"github.com/gozkd/gozkd/web/internal/call"
)

// maxLoginBody bounds the body of a login.
const maxLoginBody = 8 << 10

// login answers POST /ui/api/login.
func (h *Handler) login(w http.ResponseWriter, r *http.Request) {
	var given struct {
		Scheme   string `json:"scheme"` // digest, sasl, or "" for both
		User     string `json:"user"`
		Password string `json:"password"`
	}
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxLoginBody))
	if err == nil {
		if err = json.Unmarshal(b, &given); err != nil {
			err = answer.Errorf(http.StatusBadRequest, "the body must be {\"scheme\", \"user\", \"password\"}")
		}
	}
	if err != nil {
		call.Fail(w, err)
		return
	}
	who, err := h.gate.Login(w, r, given.Scheme, given.User, given.Password)
	if err != nil {
		call.Fail(w, err)
		return
	}
	answer.JSON(w, http.StatusOK, h.whoIs(&who))
}

// logout answers POST /ui/api/logout.
func (h *Handler) logout(w http.ResponseWriter, r *http.Request) {
	h.gate.Logout(w, r)
	w.WriteHeader(http.StatusNoContent)
}
