package discovery

func (in Instance[T]) ToJSON() ([]byte, error) { return in.toJSON() }

func FromJSON[T any](data []byte) (Instance[T], error) { return fromJSON[T](data) }
