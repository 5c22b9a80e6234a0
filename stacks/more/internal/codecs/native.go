//go:build (amd64 && !go1.28) || (arm64 && !go1.28)

package codecs

// SonicFallsBack says why sonic is encoding/json in this build, by sonic's own build constraints. "" is that it is not.
const SonicFallsBack = ""
