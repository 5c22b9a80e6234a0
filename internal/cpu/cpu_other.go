//go:build !unix

package cpu

import "time"

func processTime() (time.Duration, bool) { return 0, false }
