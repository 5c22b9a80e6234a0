package connectapi2

// For tests with the stacks, which import this package.
var (
	NewServer   = newServer
	FromConnect = fromConnect
)

type Codec = vt
