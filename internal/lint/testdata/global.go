package lib

import (
	"bytes"
	"sync"
	"sync/atomic"
)

type codec struct{ n int }

func (codec) Close() error { return nil }

var count int // want

var (
	buffers = sync.Pool{New: func() any { return nil }} // want
	mu      sync.Mutex                                  // want
	locks   = map[string]*sync.Mutex{"x": {}}           // want
	calls   = []atomic.Int64{{}}                        // want
	cache   = map[string]int{}                          // want
	buf     bytes.Buffer                                // want
	std     = &codec{n: 1}                              // want
	encode  = func() {}                                 // want
	closer  = codec.Close                               // want
	limit   = 10                                        // want
	a, b    = pair()                                    // want
	c, d    = []int{1}, new(int)                        // want
	_       = register()                                // want
)

func pair() (int, int) { return 1, 2 }

func register() bool { return true }
