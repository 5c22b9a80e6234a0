package lib

import (
	clock "time"
)

func wait() {
	clock.Sleep(clock.Second) // want
	pause := clock.Sleep      // want
	pause(1)
}
