package rpcbench

// Listener is what the server of a fixture accepts from.
type Listener = listener
