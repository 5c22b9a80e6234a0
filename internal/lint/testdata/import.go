package lib

import (
	_ "expvar"         // want
	_ "net/http/pprof" // want

	gz "google.golang.org/grpc/encoding/gzip" // want
)

const name = gz.Name
