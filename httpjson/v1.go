//go:build !goexperiment.jsonv2

package httpjson

const name = "httpjson"
