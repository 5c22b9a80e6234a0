//go:build !go1.26 || go1.27

package codecs

// goJSON is empty where the Go release is one that goccy/go-json was not tried with: see package goccy.
func goJSON() []Row { return nil }

func goJSONLoops[T any](*T) (marshal func(int) ([]byte, int, error), unmarshal func([]byte, int) (any, error)) {
	return nil, nil
}
