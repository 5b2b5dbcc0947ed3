package consensus

// yielder tells the loop whether to yield the processor when it is woken. If many connections have
// sent requests at once, the first wakes the loop, and an entry with that request alone would cost
// as much as an entry with all of them.
//
// A lone client gains nothing if the loop yields. After yielderMemory turns with at most one input
// each, the loop stops yielding, except once every yielderMemory turns, to notice new load.
type yielder struct{ turns, recent int }

const yielderMemory = 64

// shouldYield begins a turn.
func (y *yielder) shouldYield() bool {
	y.turns++
	return y.recent > 0 || y.turns%yielderMemory == 0
}

// took notes how many inputs a turn took from the inbox.
func (y *yielder) took(inputs int) {
	switch {
	case inputs > 1:
		y.recent = yielderMemory
	case y.recent > 0:
		y.recent--
	}
}
