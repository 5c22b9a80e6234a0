package lib

func init() {} // want

func init() { // want
	println()
}
