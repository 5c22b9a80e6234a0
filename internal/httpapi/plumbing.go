package httpapi

import (
	"io"
	"log"
	"net"
	"net/http"

	"github.com/rpcbench/rpcbench"
)

// Protocols is one HTTP version and no other, in clear as over TLS.
func Protocols(http2 bool) *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(!http2)
	p.SetHTTP2(http2)
	p.SetUnencryptedHTTP2(http2)
	return p
}

// HTTPHandler is what the server serves: rpcbench serve adds to it.
func (s server) HTTPHandler() http.Handler { return s.Handler }

// NewServer serves h with the limits that every server has.
func NewServer(config rpcbench.ServerConfig, h http.Handler, http2 bool) rpcbench.Server {
	idle, header := config.Limits()
	return server{&http.Server{
		Handler:           h,
		ErrorLog:          log.New(io.Discard, "", 0), // a handshake cut short would print between a row's name and its figures
		TLSConfig:         config.TLS,
		Protocols:         Protocols(http2),
		ReadHeaderTimeout: header,
		IdleTimeout:       idle,
		MaxHeaderBytes:    rpcbench.MaxHeader,
	}}
}

// server is an *http.Server that serves TLS when it was given a TLS configuration.
type server struct{ *http.Server }

func (s server) Serve(ln net.Listener) error {
	if s.TLSConfig != nil {
		return s.ServeTLS(ln, "", "")
	}
	return s.Server.Serve(ln)
}

// BaseURL is the scheme and host of a client's requests.
func BaseURL(config rpcbench.ClientConfig) string {
	if config.TLS != nil {
		return "https://" + config.Addr
	}
	return "http://" + config.Addr
}

// HTTPClients are the clients to bind calls to: one for all connections of HTTP/1.1, whose calls take any that is idle; one
// for each of HTTP/2, whose Transport would send everything over one. They neither ask for compression nor undo it.
func HTTPClients(config rpcbench.ClientConfig, http2 bool) []*http.Client {
	clients, conns := 1, config.Conns
	if http2 {
		clients, conns = conns, 1
	}
	all := make([]*http.Client, clients)
	for i := range all {
		all[i] = &http.Client{Transport: &http.Transport{
			DialContext:         config.DialContext,
			TLSClientConfig:     config.TLS.Clone(), // the Transport writes into it
			Protocols:           Protocols(http2),
			DisableCompression:  true,
			MaxConnsPerHost:     conns,
			MaxIdleConnsPerHost: conns,
		}}
	}
	return all
}

// CloseIdle makes the closer of an http.Client.
func CloseIdle(c *http.Client) func() error {
	return func() error {
		c.CloseIdleConnections()
		return nil
	}
}
