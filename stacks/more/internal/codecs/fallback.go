//go:build (!amd64 && !arm64) || go1.28

package codecs

// SonicFallsBack says why sonic is encoding/json in this build, by sonic's own build constraints.
const SonicFallsBack = "sonic v1.15.5 is encoding/json here: it has code of its own for amd64 and arm64, up to Go 1.27"
