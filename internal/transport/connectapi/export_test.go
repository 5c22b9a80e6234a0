package connectapi

// For tests with the stacks, which import this package.
var NewServer = newServer

type Codec = vt
