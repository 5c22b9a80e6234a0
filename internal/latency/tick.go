package latency

import "time"

// Ticks is how many ticks of a coarse clock a duration has to take to be reported: a tick is then a twentieth of it.
const Ticks = 20

// Tick returns the step of a clock that is coarser than the time to read it, as that of Windows is with about 0.5 ms. It
// returns 0 for any other clock.
func Tick(now func() time.Duration) time.Duration {
	const readings = 100
	smallest, stood := time.Duration(1<<63-1), 0
	for range readings {
		before := now()
		after := now()
		if after == before {
			stood++
		}
		for after == before {
			after = now()
		}
		smallest = min(smallest, after-before)
	}
	if stood < readings/2 {
		return 0
	}
	return smallest
}
