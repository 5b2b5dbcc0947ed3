package faultsapi

// Row is a row of the table of requests.
type Row struct{ Method, Path, Query, Body, Answer, Note string }

// Rows returns the table.
func Rows() (rows []Row) {
	for _, r := range routes() {
		rows = append(rows, Row{r.method, r.path, r.query, r.body, r.answer, r.note})
	}
	return rows
}

// ErrCodeOf reads an error code from JSON.
func ErrCodeOf(text string) (int32, error) {
	var c errCode
	err := c.UnmarshalJSON([]byte(text))
	return int32(c), err
}

// MaxBody is the limit of a body.
const MaxBody = maxBody
