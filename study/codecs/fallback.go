//go:build (!amd64 && !arm64) || go1.28

package codecs

// ofSonic returns none: by sonic's own build constraints sonic v1.15.5 is encoding/json in this build. It has code of
// its own for amd64 and arm64, up to Go 1.27.
func ofSonic() []Row { return nil }
