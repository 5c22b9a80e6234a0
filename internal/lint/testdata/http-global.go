package lib

import (
	"net"
	web "net/http"
)

func globals(l net.Listener, h web.HandlerFunc) {
	web.Get("x")                         // want
	web.Post("x", "", nil)               // want
	web.PostForm("x", nil)               // want
	web.Head("x")                        // want
	web.Handle("/", h)                   // want
	web.HandleFunc("/", h)               // want
	web.ListenAndServe("", h)            // want
	web.ListenAndServeTLS("", "", "", h) // want
	web.Serve(l, h)                      // want
	web.ServeTLS(l, h, "", "")           // want
	_ = web.DefaultServeMux              // want
	_ = web.DefaultClient                // want
	_ = web.DefaultTransport             // want

	_ = web.DefaultTransport.(*web.Transport).CloseIdleConnections // want
	_ = web.DefaultTransport.(*web.Transport).Clone()
	get := web.Get // want
	_ = get
}
