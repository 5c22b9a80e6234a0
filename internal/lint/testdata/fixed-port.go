package lib

import "net"

const addr = ":8080" // want

func listen() {
	net.Listen("tcp", "127.0.0.1:8080") // want
	net.Listen("tcp", "localhost:9000") // want
	net.Listen("tcp", "[::1]:9000")     // want
	net.Listen("tcp", `0.0.0.0:080`)    // want
	_ = []string{
		"http://localhost:8080/users",    // want
		"passthrough:///127.0.0.1:50051", // want
	}
}
