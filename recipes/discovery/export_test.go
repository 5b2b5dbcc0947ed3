package discovery

func (in Instance[T]) ToJSON() ([]byte, error) {
	r, err := in.record()
	if err != nil {
		return nil, err
	}
	return marshal(r)
}

func FromJSON[T any](data []byte) (Instance[T], error) { return fromJSON[T](data) }
