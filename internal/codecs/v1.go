//go:build !go1.27 || !goexperiment.jsonv2

package codecs

func jsonV2() []Row { return nil }

func jsonV2Loops[T any](*T) (marshal func(int) ([]byte, int, error), unmarshal func([]byte, int) (any, error)) {
	return nil, nil
}
