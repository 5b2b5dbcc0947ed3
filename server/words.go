package server

// isWord reports whether the first four bytes of a connection are a four-letter word.
func isWord(w string) bool { return w == "ruok" }

// answerWord answers a four-letter word.
func (c *conn) answerWord(word string, in *input) {
	c.mu.Lock()
	c.out = append(c.out, "imok"...)
	c.mu.Unlock()
	c.flush()
}
