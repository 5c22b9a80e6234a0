package lib

import (
	"net/http"
	"time"
)

type client struct {
	inner http.Client // want
}

func clients() {
	_ = &http.Client{}                    // want
	_ = http.Client{Timeout: time.Second} // want
	_ = http.Client{Transport: nil}       // want
	_ = new(http.Client)                  // want
	var a, b http.Client                  // want
	_, _ = a, b
}
