package lib

import nethttp "net/http"

type server struct {
	nethttp.Server // want
}

type alias = nethttp.Server // want

func servers(h nethttp.Handler) {
	_ = &nethttp.Server{}                                                          // want
	_ = nethttp.Server{Addr: "x"}                                                  // want
	_ = nethttp.Server{Handler: nil}                                               // want
	_ = new(nethttp.Server)                                                        // want
	_ = make([]nethttp.Server, 1)                                                  // want
	var s nethttp.Server                                                           // want
	s.Handler = h                                                                  // the literal must set it
	_ = []any{nethttp.Server{Handler: h}, func() any { return &nethttp.Server{} }} // want
}
