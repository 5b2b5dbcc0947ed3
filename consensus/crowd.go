package consensus

// crowd tells the loop whether to wait, when it is woken, for whoever else is about to put something into its inbox: of many connections whose
// requests came at once the first wakes it, and an entry of that one alone costs as much as one of all. A lone client would wait for nobody. So
// after crowdMemory turns that brought one thing each it is not waited, but in one turn of so many, to notice that more come.
type crowd struct{ turns, recent int }

const crowdMemory = 64

// expected begins a turn.
func (c *crowd) expected() bool {
	c.turns++
	return c.recent > 0 || c.turns%crowdMemory == 0
}

// came is told how much a turn takes from the inbox.
func (c *crowd) came(inputs int) {
	switch {
	case inputs > 1:
		c.recent = crowdMemory
	case c.recent > 0:
		c.recent--
	}
}
